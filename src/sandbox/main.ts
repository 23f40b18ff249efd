import { Command, InvalidArgumentError, Option } from 'commander'
import { createLogger } from '../platform/log.ts'
import { DEFAULTS, startSandbox } from './sandbox.ts'

type Merchant = { mchId: string; key: string }

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
  merchant: Merchant[]
  balance: bigint
  settleMs: number
  latencyMs: number
  callbackRetries: number[]
  feeFlat: bigint
  feeBps: bigint
}): Promise<void> {
  const log = createLogger({ level: 'warn', name: 'sandbox', destination: 2 })
  const { merchant: merchants, ...rest } = options
  const sandbox = await startSandbox({ ...rest, merchants, log })
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

function paise(flags: string, description: string, name: 'balance' | 'feeFlat' | 'feeBps'): Option {
  const standard = DEFAULTS[name]
  return new Option(flags, description).argParser(money).default(standard, String(standard))
}

/** At most what JSON carries exactly: a balance is an integer in the contract. */
function money(text: string): bigint {
  if (!/^\d{1,15}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of at most 15 digits.')
  return BigInt(text)
}

function pauses(text: string): number[] {
  return text === '' ? [] : text.split(',').map(whole)
}

function merchant(text: string, before: Merchant[]): Merchant[] {
  const [, mchId, key] = /^([^:]+):(.+)$/.exec(text) ?? []
  // Not an InvalidArgumentError: commander would print the argument, and the key is in it.
  if (!mchId || !key) throw new Error('--merchant must be written MCHID:KEY')
  return [...before, { mchId, key }]
}
