import { type PayPeriod, payPeriodAt } from '../domain/commands/pay-period.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import type { Instant } from '../domain/instant.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Connection } from '../platform/postgres/postgres.ts'
import { type FoundPayment, otherPaymentsOf, requestedTimes } from './sql/payouts/other-payments.ts'

/** Another payout of the same amount to the same beneficiary, by bank details or id, that is paid, or may still be. */
export type OtherPayment = Pick<
  FoundPayment,
  'state' | 'reason' | 'mayBePaid' | 'cameBack' | 'toOtherDetails'
> & {
  payoutId: string
  batchId: string | null
}

/** `thereMayBeMore`: there are so many equal payments that payoutd did not look at all of them; then `found` may be empty too. */
export type OtherPayments = { found: OtherPayment[]; thereMayBeMore: boolean }

export const NO_OTHER_PAYMENTS: OtherPayments = { found: [], thereMayBeMore: false }

/** Whether something else pays the same, or may. */
export const areThere = ({ found, thereMayBeMore }: OtherPayments): boolean =>
  found.length > 0 || thereMayBeMore

/**
 * What else pays the same as each of these payouts if it is paid now, by payoutId; none where nothing does. A payment counts if
 * it does so in a pay period from the one for which the payout was requested to the one in which it would be paid.
 */
export async function otherPayments(
  connection: Connection,
  { merchantId, payoutIds }: { merchantId: string; payoutIds: readonly string[] },
  payPeriod: PayPeriod,
  now: Instant,
): Promise<ReadonlyMap<string, OtherPayments>> {
  const times = await connection.run(requestedTimes, { merchantId, payoutIds: [...payoutIds] })
  const wanted = times.map(({ payoutId, requestedFor, paysAt }) => ({
    payoutId,
    periodFrom: payPeriodAt(requestedFor, payPeriod).from,
    periodTo: payPeriodAt(Math.max(paysAt, now), payPeriod).to,
  }))
  if (wanted.length === 0) return new Map()
  const rows = await connection.run(otherPaymentsOf, { merchantId, wanted })
  // Each is one object: 10,000 payouts that all pay the same have two million others, in 87 MB instead of 429 MB.
  const others = new Map<string, OtherPayment>()
  const otherOf = ({ otherPayoutId: payoutId, otherBatchId: batchId, ...found }: FoundPayment) => {
    const { state, reason, mayBePaid, cameBack, toOtherDetails } = found
    const key = mapKey(payoutId, String(toOtherDetails))
    const other = others.get(key) ?? { payoutId, batchId, state, reason, mayBePaid, cameBack, toOtherDetails }
    others.set(key, other)
    return other
  }
  const byPayout = Map.groupBy(rows, ({ payoutId }) => payoutId)
  return new Map(
    [...byPayout].map(([payoutId, of]) => [
      payoutId,
      {
        found: of.flatMap((row) => (row.otherPayoutId === null ? [] : [otherOf(row)])),
        thereMayBeMore: of.some(({ thereMayBeMore }) => thereMayBeMore),
      },
    ]),
  )
}

/** The same for one payout. */
export async function otherPaymentsOfOne(
  connection: Connection,
  { merchantId, payoutId }: PayoutKey,
  payPeriod: PayPeriod,
  now: Instant,
): Promise<OtherPayments> {
  const others = await otherPayments(connection, { merchantId, payoutIds: [payoutId] }, payPeriod, now)
  return others.get(payoutId) ?? NO_OTHER_PAYMENTS
}
