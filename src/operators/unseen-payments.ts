import { awaitsRelease } from '../domain/commands/holds.ts'
import type { PayPeriod } from '../domain/commands/pay-period.ts'
import { areThere, type OtherPayments } from '../queries/other-payments.ts'

/**
 * How to look for other payments of the same. `payPeriod`: the merchant's. `known`: the payoutIds of those that the operator knows of;
 * null: the operator is shown them all.
 */
export type LookForOthers = { payPeriod: PayPeriod; known: readonly string[] | null }

/**
 * The other payments that the operator has not been shown; null: none. Nobody can know of those that payoutd did not look at. A held
 * one need not be named, unless it is among `together`, which the same command pays: whoever releases it later is shown this one.
 */
export const unseenOf = (
  { found, thereMayBeMore }: OtherPayments,
  known: readonly string[] | null,
  together: ReadonlySet<string>,
): OtherPayments | null => {
  if (known === null) return null
  const unseen = {
    found: found.filter(
      (other) => !known.includes(other.payoutId) && (!awaitsRelease(other) || together.has(other.payoutId)),
    ),
    thereMayBeMore,
  }
  return areThere(unseen) ? unseen : null
}

/**
 * What is compared with what was shown. It is no change that one of them went on from being sent to being paid (unless it was in
 * review, where a person may take it for dead), nor that one waits for a release of its own: whoever releases that sees this one, and a
 * long release would stop half way at every new duplicate.
 */
export const comparable = ({ found, thereMayBeMore }: OtherPayments): object => ({
  found: new Set(
    found
      .filter((other) => !awaitsRelease(other))
      .map(({ payoutId, mayBePaid, state }) => `${payoutId} ${mayBePaid} ${state === 'review'}`),
  ),
  thereMayBeMore,
})
