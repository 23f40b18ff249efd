import { Command, InvalidArgumentError, Option } from 'commander'
import { createLogger } from '../platform/log.ts'
import { readDialect } from './dialect-file.ts'
import { readSeed } from './merchant-file.ts'
import type { WantedMerchant } from './merchants.ts'
import { DEFAULTS, startSandbox } from './sandbox.ts'

new Command('sandbox')
  .description('The payment gateway as a server of its own, for trying out, testing and measuring.')
  .option('--host <host>', 'address to listen on', DEFAULTS.host)
  .option('--port <port>', 'port to listen on; 0 takes any free one', whole, 8790)
  .option('--state <file>', 'SQLite file that holds everything', 'sandbox.sqlite')
  .addOption(
    new Option('--merchant <mchId:key>', 'a merchant; repeat it for more')
      .argParser(merchant)
      .default([], 'none'),
  )
  .option('--seed <file>', 'merchants as JSON: {"merchants": [{"mchId", "key", …}]}')
  .option(
    '--dialect <file>',
    'how parameters travel and are signed, and where, as JSON; none: a form, MD5, upper case',
  )
  .addOption(
    paise('--balance <paise>', 'what a merchant begins with that the state file does not know', 'balance'),
  )
  .option('--settle-ms <ms>', 'from acceptance to the end of a payout', whole, DEFAULTS.settleMs)
  .option('--latency-ms <ms>', 'how long every answer takes at least', whole, DEFAULTS.latencyMs)
  .option('--callback-retries <seconds>', 'pauses before a callback is repeated', pauses, [
    ...DEFAULTS.callbackRetries,
  ])
  .addOption(paise('--fee-flat <paise>', 'fee of a payout', 'feeFlat'))
  .addOption(paise('--fee-bps <bps>', 'basis points of the amount added to it', 'feeBps'))
  .option('--payin-expiry-ms <ms>', 'how long a payin may be paid', whole, DEFAULTS.payinExpiryMs)
  .option('--payin-settle-ms <ms>', 'until the money of a payin is available', whole, DEFAULTS.payinSettleMs)
  .addOption(paise('--payin-fee-flat <paise>', 'fee of a payin', 'payinFeeFlat'))
  .addOption(paise('--payin-fee-bps <bps>', 'basis points of the amount added to it', 'payinFeeBps'))
  .option('--public-url <url>', 'how browsers reach it, for payUrl; none: the address it listens on', origin)
  .action(run)
  .parseAsync()
  .catch((error: Error) => {
    process.stderr.write(`sandbox: ${error.message}\n`)
    process.exitCode = 1
  })

async function run(options: {
  host: string
  port: number
  state: string
  merchant: WantedMerchant[]
  seed?: string
  dialect?: string
  balance: bigint
  settleMs: number
  latencyMs: number
  callbackRetries: number[]
  feeFlat: bigint
  feeBps: bigint
  payinExpiryMs: number
  payinSettleMs: number
  payinFeeFlat: bigint
  payinFeeBps: bigint
  publicUrl?: string
}): Promise<void> {
  const log = createLogger({ level: 'warn', name: 'sandbox', destination: 2 })
  const { merchant, seed, dialect: file, ...rest } = options
  const merchants = [...(seed === undefined ? [] : readSeed(seed)), ...merchant]
  const dialect = file === undefined ? undefined : readDialect(file)
  const sandbox = await startSandbox({ ...rest, merchants, dialect, log })
  process.stdout.write(
    `sandbox ready at ${sandbox.url}, merchants: ${sandbox.merchants.join(', ') || 'none'}\n`,
  )
  const stop = () => void sandbox.stop()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

type Money = 'balance' | 'feeFlat' | 'feeBps' | 'payinFeeFlat' | 'payinFeeBps'

function paise(flags: string, description: string, name: Money): Option {
  const standard = DEFAULTS[name]
  return new Option(flags, description).argParser(money).default(standard, String(standard))
}

/** At most what JSON carries exactly: a balance is an integer in the contract. */
function money(text: string): bigint {
  if (!/^\d{1,15}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of at most 15 digits.')
  return BigInt(text)
}

function origin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new InvalidArgumentError('It must be an http or https URL without a path.')
  return url.origin
}

function pauses(text: string): number[] {
  return text === '' ? [] : text.split(',').map(whole)
}

function merchant(text: string, before: WantedMerchant[]): WantedMerchant[] {
  const [, mchId, key] = /^([^:]+):(.+)$/.exec(text) ?? []
  // Not an InvalidArgumentError: commander would print the argument, and the key is in it.
  if (!mchId || !key) throw new Error('--merchant must be written MCHID:KEY')
  return [...before, { mchId, key }]
}
