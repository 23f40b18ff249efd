import { Command, Option } from 'commander'
import { createLogger } from '../../src/platform/log.ts'
import { DEFAULTS, startSandbox } from './sandbox.ts'
import { readSeed } from './state/merchant-file.ts'
import type { WantedMerchant } from './state/merchants.ts'
import { readDialect } from './wire/dialect-file.ts'

/** All faults of the options, to report them together. */
const wrong: string[] = []

new Command('sandbox')
  .description('A payment gateway to try out, test and measure payoutd with.')
  .option('--host <host>', 'address to listen on', DEFAULTS.host)
  .addOption(read('--port <port>', 'port to listen on; 0 takes any free one', whole, 8790))
  .option('--state <file>', 'SQLite file in which it stores everything', 'sandbox.sqlite')
  .addOption(read('--merchant <mchId:key>', 'a merchant; repeat it for more', merchant, [], 'none'))
  .option('--seed <file>', 'merchants as JSON: {"merchants": [{"mchId", "key", …}]}')
  .option(
    '--dialect <file>',
    'JSON file that says how parameters are sent and signed, and the paths; without it: a form, MD5, upper case',
  )
  .addOption(
    paise('--balance <paise>', 'the opening balance of a merchant that is not in the state file', 'balance'),
  )
  .addOption(
    read('--settle-ms <ms>', 'time from acceptance to the end of a payout', whole, DEFAULTS.settleMs),
  )
  .addOption(read('--latency-ms <ms>', 'the least time that an answer takes', whole, DEFAULTS.latencyMs))
  .addOption(
    read('--callback-retries <seconds>', 'pauses before a callback is repeated', pauses, [
      ...DEFAULTS.callbackRetries,
    ]),
  )
  .addOption(paise('--fee-flat <paise>', 'fee of a payout', 'feeFlat'))
  .addOption(paise('--fee-bps <bps>', 'basis points of the amount, added to the fee', 'feeBps'))
  .addOption(read('--payin-expiry-ms <ms>', 'how long a payin may be paid', whole, DEFAULTS.payinExpiryMs))
  .addOption(
    read(
      '--payin-settle-ms <ms>',
      'time until the money of a payin is available',
      whole,
      DEFAULTS.payinSettleMs,
    ),
  )
  .addOption(paise('--payin-fee-flat <paise>', 'fee of a payin', 'payinFeeFlat'))
  .addOption(paise('--payin-fee-bps <bps>', 'basis points of the amount, added to the fee', 'payinFeeBps'))
  .addOption(
    read(
      '--public-url <url>',
      'the address by which browsers reach it, for payUrl; without it: the address on which it listens',
      origin,
      undefined,
    ),
  )
  .action(run)
  .parseAsync()
  .catch((error: Error) => {
    process.stderr.write(error.message.replaceAll(/^/gm, 'sandbox: ').concat('\n'))
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
  const seeded = seed === undefined ? [] : (told(() => readSeed(seed)) ?? [])
  const merchants = [...seeded, ...merchant]
  const dialect = file === undefined ? undefined : told(() => readDialect(file))
  for (const mchId of repeated(merchants)) {
    wrong.push(`merchant ${mchId} is given more than once: its older keys belong in olderKeys of a seed file`)
  }
  if (wrong.length > 0) throw new Error(wrong.join('\n'))
  const sandbox = await startSandbox({ ...rest, merchants, dialect, log })
  process.stdout.write(
    `sandbox ready at ${sandbox.url}, merchants: ${sandbox.merchants.join(', ') || 'none'}\n`,
  )
  const stop = () => void sandbox.stop()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

/** Reads an option's text with `reader`; collects what that throws with the other faults. */
function read<T>(
  flags: string,
  description: string,
  reader: (text: string, before: T) => T,
  standard: T,
  shown?: string,
): Option {
  const [name] = flags.split(' ')
  const parse = (text: string, before: T) => told(() => reader(text, before), `${name} `) ?? before
  return new Option(flags, description).argParser(parse).default(standard, shown)
}

/** Returns what `work` returns; collects what it throws with the other faults, after `what`. */
function told<T>(work: () => T, what = ''): T | undefined {
  try {
    return work()
  } catch (error) {
    wrong.push(`${what}${(error as Error).message}`)
    return undefined
  }
}

function repeated(merchants: readonly WantedMerchant[]): Set<string> {
  const mchIds = merchants.map(({ mchId }) => mchId)
  return new Set(mchIds.filter((mchId, i) => mchIds.indexOf(mchId) < i))
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error('must be a whole number')
  return Number(text)
}

type Money = 'balance' | 'feeFlat' | 'feeBps' | 'payinFeeFlat' | 'payinFeeBps'

function paise(flags: string, description: string, name: Money): Option {
  return read(flags, description, money, DEFAULTS[name], String(DEFAULTS[name]))
}

/** Limited to what JSON carries exactly: a balance is an integer in the contract. */
function money(text: string): bigint {
  if (!/^\d{1,15}$/.test(text)) throw new Error('must be a whole number of at most 15 digits')
  return BigInt(text)
}

function origin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new Error('must be an http or https URL without a path')
  return url.origin
}

function pauses(text: string): number[] {
  if (!/^(\d{1,9}(,\d{1,9})*)?$/.test(text)) throw new Error('must be whole numbers of seconds with commas')
  return text === '' ? [] : text.split(',').map(Number)
}

function merchant(text: string, before: WantedMerchant[]): WantedMerchant[] {
  const [, mchId, key] = /^([^:]+):(.+)$/.exec(text) ?? []
  if (!mchId || !key) throw new Error('must be written MCHID:KEY')
  return [...before, { mchId, key }]
}
