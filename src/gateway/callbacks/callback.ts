import type { Doubt, Exchange, OrderReport } from '../../domain/evidence.ts'
import type { PayinCallback } from '../../domain/payin/gateway-answers.ts'
import { readOrderReport } from '../calls/order-report.ts'
import { readPayinReport } from '../calls/payin-report.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { redactReceived } from '../wire/exchange.ts'
import { type Malformed, readSignedQuery, type SignedParameters } from '../wire/signed-query.ts'
import { readIdentifier } from '../wire/values.ts'

/**
 * The result of reading a callback. `verified`: signed by the gateway, so it is evidence, even if it names none of our orders.
 * `malformed`: it has no reading at all; `why` is a stable word.
 */
export type ParsedCallback<Report = OrderReport> =
  | { kind: 'verified'; report: Report }
  | { kind: 'bad-signature' }
  | { kind: 'malformed'; why: Malformed }

/** Reads a payout callback (gateway contract, "Payout callback") from its query string, without the "?". */
export function parsePayoutCallback(
  rawQueryString: string,
  dialect: Pick<Dialect, 'sign'>,
  key: string,
): ParsedCallback {
  const read = readSignedQuery(rawQueryString, dialect.sign, key)
  if (read.kind !== 'verified') return read
  const report = readOrderReport(read.fields, exchangeOf(read))
  return {
    kind: 'verified',
    report: read.doubt ? { ...report, status: 'unlisted', doubt: read.doubt } : report,
  }
}

/** Reads a payin callback (gateway contract, "Payin callback") from its query string, without the "?". */
export function parsePayinCallback(
  rawQueryString: string,
  dialect: Pick<Dialect, 'sign'>,
  key: string,
): ParsedCallback<PayinCallback> {
  const read = readSignedQuery(rawQueryString, dialect.sign, key)
  if (read.kind !== 'verified') return read
  const { fields, doubt } = read
  const report = {
    ...readPayinReport(fields, exchangeOf(read)),
    ...(doubt ? { status: 'unlisted' as const, doubt } : {}),
    mchId: readIdentifier(fields.get('mchId')),
    backType: readIdentifier(fields.get('backType')),
    channelCode: readIdentifier(fields.get('channelCode')),
  }
  return { kind: 'verified', report }
}

/** What verifying a callback needs to know about an account. */
export type CallbackAccount = {
  accountId: string
  dialect: Pick<Dialect, 'sign'>
  keys: readonly { key: string; fingerprint: string }[]
}

/**
 * A callback's report, and the accounts in the settings whose key verified it. It can only be about their orders, or those of other
 * accounts that ever had the same key.
 */
export type Vouched<Report> = { report: Report; accountIds: readonly string[]; keyFingerprint: string }

/** Reads a callback with every key of every account of a merchant. There is at least one. */
export function readVouched<Report>(
  accounts: readonly CallbackAccount[],
  read: (dialect: Pick<Dialect, 'sign'>, key: string) => ParsedCallback<Report>,
): ParsedCallback<Vouched<Report>> {
  const readings = accounts.flatMap(({ accountId, dialect, keys }) =>
    keys.map(({ key, fingerprint }) => ({ accountId, fingerprint, parsed: read(dialect, key) })),
  )
  const verified = readings.flatMap(({ accountId, fingerprint, parsed }) =>
    parsed.kind === 'verified' ? [{ accountId, fingerprint, report: parsed.report }] : [],
  )
  const [first] = verified
  if (!first) return (readings[0] as (typeof readings)[number]).parsed as Unverified
  return {
    kind: 'verified',
    report: {
      ...{ report: first.report, keyFingerprint: first.fingerprint },
      accountIds: verified.map(({ accountId }) => accountId),
    },
  }
}

type Unverified = Exclude<ParsedCallback, { kind: 'verified' }>

/** No parameter of a callback is null. */
const exchangeOf = ({ fields, doubt }: { fields: SignedParameters; doubt: Doubt | null }): Exchange => ({
  request: redactReceived(fields, []) as Record<string, string>,
  ...(doubt ? { note: NOTES[doubt] } : {}),
})

const NOTES: Record<Doubt, string> = {
  'of-a-request': 'it has fields that only requests have, so it changes nothing; payoutd queries the gateway',
  'several-readings':
    'the signed text can be read in more than one way, so it changes nothing; payoutd queries the gateway',
  'unsigned-parameters':
    'it has parameters that nobody signed, so it changes nothing; payoutd queries the gateway',
}
