import type { Exchange } from '../../../domain/evidence.ts'
import { formatRupees, type Paise } from '../../../domain/money.ts'
import { visible } from '../../../text/text.ts'
import { print } from '../../print.ts'

/** The exit codes of `payoutd gateway`. */
export const EXIT = { yes: 0, no: 1, unknown: 2 } as const

export const EXIT_CODES = `
Exit codes:
  0  the gateway accepted the request or knows the order; the signature verifies; the probe found
     the dialect; nothing differs from the contract
  1  the gateway refused, did not accept now, or found nothing; nothing was sent; the signature does
     not verify; something differs from the contract; options or settings are wrong
  2  the outcome is unknown: there is no valid answer, the gateway already has an order with this
     number, or you interrupted the command`

/** A line for a person; null leaves it out. */
export type Fact = readonly [name: string, value: string | null]

/** The result of a call, for people and for programs. `title`: one line or several. */
export type GatewayOutcome = {
  code: number
  title: string | readonly string[]
  facts: readonly Fact[]
  json: object
}

/** Prints an outcome and sets the exit code. */
export function printOutcome({ code, title, facts, json }: GatewayOutcome, asJson: boolean): void {
  process.exitCode = code
  if (asJson) print(JSON.stringify(json, paiseAsText, 2))
  else print([...[title].flat().map(visible), ...factLines(facts)].join('\n'))
}

/** Name and value in two columns, each on its line whatever the gateway says. */
export function factLines(facts: readonly Fact[]): string[] {
  const shown = facts.filter((fact): fact is [string, string] => fact[1] !== null)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `  ${name.padEnd(width)}  ${visible(value)}`)
}

export const rupees = (amount: Paise | null): string | null => (amount === null ? null : formatRupees(amount))

/** A call to `path` without an answer, or one that was never made; `next` is what to do about an order that it left open. */
export function withoutAnswer(
  answer: { kind: string; reason: string; exchange: Exchange },
  path: string,
  next?: string,
): GatewayOutcome {
  const { kind, reason, exchange } = answer
  const sent = kind !== 'not-sent' && reason !== 'not-sent'
  // If an apply was not sent, nothing was paid; if a query was not sent, its question stays open.
  const code = kind === 'not-sent' || exchange.faults ? EXIT.no : EXIT.unknown
  const why =
    reason === 'http-status'
      ? `HTTP ${exchange.httpStatus} from ${path}, not 200`
      : (REASONS[reason] ?? reason)
  const title = sent ? unknownTitle(why, next) : `not sent: ${exchange.note ?? reason}`
  return { code, title, facts: said(exchange), json: answer }
}

/** The outcome of an interrupted call. */
export const interrupted = (next: string): GatewayOutcome => ({
  code: EXIT.unknown,
  title: unknownTitle('interrupted; the gateway may have received the request', next),
  facts: [],
  json: { kind: 'unknown', reason: 'interrupted', next },
})

const unknownTitle = (why: string, next?: string): string =>
  `unknown: ${why}${next === undefined ? '' : `; ${next}`}`

const REASONS: { readonly [reason: string]: string } = {
  'unlisted-code':
    'the dialect does not list the retCode of the answer: the merchant number or key may be wrong',
  'bad-signature':
    'the answer is not signed with this key in this dialect: the merchant number or key may be wrong; ' +
    'try payoutd gateway probe',
  unsigned: 'the answer carries no signature',
  timeout: 'no answer in time',
  'connection-lost': 'the connection was lost before an answer',
  unparsable: 'the answer cannot be read',
  'no-order-id': 'the answer contains no order number',
  'other-order': 'the answer is about another order',
  'retry-later': 'the gateway asks to be queried later',
}

/** The answer on the wire, which is masked already. */
export function said({ response, httpStatus }: Exchange): Fact[] {
  const text = (name: string) => (typeof response?.[name] === 'string' ? String(response[name]) : null)
  return [
    ['HTTP status', httpStatus === undefined || httpStatus === 200 ? null : String(httpStatus)],
    ['retCode', text('retCode')],
    ['retMsg', text('retMsg')],
  ]
}

/** A JSON number may not hold an amount exactly. */
const paiseAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)
