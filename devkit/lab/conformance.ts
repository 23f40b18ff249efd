import { Command, InvalidArgumentError } from 'commander'
import { agreed } from '../../src/cli/agreed.ts'
import {
  type ConnectionOptions,
  connectionOf,
  type GatewayConnection,
  withClient,
  withConnection,
} from '../../src/cli/commands/gateway/connection.ts'
import { interruptible } from '../../src/cli/commands/gateway/interruption.ts'
import { EXIT, type GatewayOutcome, printOutcome, said } from '../../src/cli/commands/gateway/outcome.ts'
import { recordRaw } from '../../src/cli/commands/gateway/record.ts'
import { withWho } from '../../src/cli/decision.ts'
import { note, print } from '../../src/cli/print.ts'
import type { Decided } from '../../src/domain/payout/resolve.ts'
import { ExpectedFailure } from '../../src/platform/expected-failure.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { openCallbacks } from './conformance/callbacks.ts'
import { CASES, tryConformance, type Verdict } from './conformance/suite.ts'
import { type Beneficiary, SANDBOX_BENEFICIARY, sandboxWorld } from './conformance/world.ts'

type ConformanceOptions = ConnectionOptions &
  Decided & {
    sandbox?: true
    accountNo?: string
    accountName?: string
    ifsc?: string
    callbackPort: number
    callbackUrl?: string
    patience: number
    yes?: true
    json?: true
  }

export const conformanceCommand = withWho(withConnection(new Command('conformance')))
  .description(
    'test a gateway against every sentence of the contract and report the differences; ' +
      'this creates payins and payouts of ₹1 each',
  )
  .option(
    '--sandbox',
    'the gateway is payoutd’s sandbox: the test plays the payers, pays invented beneficiaries and moves the clock forward',
  )
  .option('--account-no <number>', 'the account that the payouts pay; without it, no payout is tried')
  .option('--account-name <name>', 'the name of that account’s holder')
  .option('--ifsc <code>', 'the IFSC of that account’s bank')
  .option(
    '--callback-port <port>',
    'the port on which to receive callbacks; 0 takes any free one',
    wholeNumber,
    0,
  )
  .option(
    '--callback-url <url>',
    'the URL by which the gateway reaches that port, if it is not on this machine',
  )
  .option('--patience <seconds>', 'how long to wait for a callback', wholeNumber, 30)
  .option('--yes', 'do not ask; needed if there is no terminal')
  .option('--json', 'print the verdicts as JSON')
  .action(async ({ json, yes, ...options }: ConformanceOptions) => {
    const connection = connectionOf(options)
    const beneficiary = beneficiaryOf(options)
    if (!yes && !(await confirmed(connection))) {
      note('nothing was sent')
      process.exitCode = EXIT.no
      return
    }
    const hindrance = await hindranceAt(connection)
    if (hindrance) {
      printOutcome(hindrance, json === true)
      return
    }
    const { by, reason } = options
    const act = { by, reason, command: 'gateway conformance', subjects: [] }
    await recordRaw(connection, { ...act, order: { payouts: beneficiary !== null } })
    const callbacks = await openCallbacks({
      port: options.callbackPort,
      url: options.callbackUrl ?? null,
      clock: systemClock,
    })
    try {
      const verdicts: Verdict[] = []
      const suite = tryConformance({
        ...connection,
        callbacks,
        beneficiary,
        world: options.sandbox ? sandboxWorld(connection.baseUrl, connection.mchId) : null,
        patienceMs: options.patience * 1000,
        clock: systemClock,
      })
      const tellAll = (ending = '') =>
        print(json ? JSON.stringify(verdicts.map(asJson), null, 2) : `\n${summaryOf(verdicts)}${ending}`)
      await interruptible(
        () => tellAll(`\ninterrupted after ${verdicts.length} of ${CASES.length} cases`),
        async () => {
          for await (const verdict of suite) {
            verdicts.push(verdict)
            if (!json) print(lineOf(verdict))
          }
        },
      )
      tellAll()
      process.exitCode = verdicts.some(({ verdict }) => verdict === 'differs') ? EXIT.no : EXIT.yes
    } finally {
      await callbacks.close()
    }
  })

/**
 * Why no case could hold there: the server does not answer, or does not know this merchant number and key. Null if
 * one answer proves such a server.
 */
async function hindranceAt(connection: GatewayConnection): Promise<GatewayOutcome | null> {
  return withClient(connection, async (client) => {
    const balance = await client.balance()
    if (balance.kind === 'balance') return null
    if (SILENCE.has(balance.reason)) {
      const title = `the gateway does not answer: ${balance.exchange.note ?? balance.reason}`
      return { code: EXIT.unknown, title, facts: [], json: balance }
    }
    const query = await client.query({ mchOrderNo: 'NOBODYHASTHIS' })
    const { failures } = connection.dialect.sign
    if (query.kind !== 'unknown' || (failures && query.reason === 'unlisted-code')) return null
    return {
      code: EXIT.unknown,
      title:
        'the gateway returns no balance and answers no query with a valid signature: ' +
        'the merchant number, the key or the dialect is wrong, or it is not a gateway of this family',
      facts: said(balance.exchange),
      json: balance,
    }
  })
}

const SILENCE: ReadonlySet<string> = new Set(['not-sent', 'timeout', 'connection-lost'])

/** Throws an ExpectedFailure if no terminal can ask for confirmation. */
async function confirmed({ baseUrl, mchId }: GatewayConnection): Promise<boolean> {
  const warning = `This creates payins and payouts of ₹1 each at ${baseUrl} as merchant ${mchId}.`
  if (!process.stdin.isTTY) throw new ExpectedFailure(`${warning} There is no terminal to ask on: give --yes`)
  return agreed(`${warning} Go on?`)
}

/** Null if no payout is to be tried. */
function beneficiaryOf({ sandbox, accountNo, accountName, ifsc }: ConformanceOptions): Beneficiary | null {
  const given = [accountNo, accountName, ifsc].filter((value) => value !== undefined)
  if (given.length === 0) return sandbox ? SANDBOX_BENEFICIARY : null
  if (accountNo === undefined || accountName === undefined || ifsc === undefined) {
    throw new ExpectedFailure('to name a beneficiary, give --account-no, --account-name and --ifsc together')
  }
  return { accountNo, accountName, values: [ifsc] }
}

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

const WORDS: Record<Verdict['verdict'], string> = {
  holds: 'holds',
  differs: 'differs',
  'not-shown': 'not shown',
  'not-tried': 'not tried',
}
const NAME_WIDTH = Math.max(...CASES.map(({ name }) => name.length))

function lineOf({ case: { name, about }, verdict, seen }: Verdict): string {
  const line = `  ${WORDS[verdict].padEnd(9)}  ${name.padEnd(NAME_WIDTH)}  ${seen}`
  return verdict === 'differs' ? `${line}\n${' '.repeat(NAME_WIDTH + 15)}contract: ${about}` : line
}

function summaryOf(verdicts: readonly Verdict[]): string {
  const numberOf = (wanted: Verdict['verdict']) => verdicts.filter(({ verdict }) => verdict === wanted).length
  return [
    `${numberOf('holds')} hold, ${numberOf('differs')} differ, ${numberOf('not-tried')} were not tried;`,
    `${numberOf('not-shown')} show what this server does where the contract says nothing`,
  ].join(' ')
}

const asJson = ({ case: { name, about }, verdict, seen }: Verdict) => ({ name, about, verdict, seen })
