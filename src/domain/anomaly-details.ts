import type { AnomalyKind } from './anomaly-kinds.ts'
import { formatRupees, type Paise } from './money.ts'
import type { Anomaly } from './payout/payout.ts'
import { endedUnpaid, type State } from './payout/states.ts'

/** How the detail of a contradiction begins. */
export const contradicts = (status: string, state: State): string =>
  `the gateway reports ${status} for a payout that is ${state}`

/**
 * How the details begin when a report of the gateway contradicts the end of a payout: the order of a paid one failed, or
 * that of one that ended unpaid is paid or alive. Says nothing about an end that the payout had, or may have had, before.
 */
export function saidAgainst(state: State): string[] {
  if (state === 'paid') return [contradicts('failed', state)]
  if (!endedUnpaid(state)) return []
  return ['success', 'pending', 'processing'].map((status) => contradicts(status, state))
}

/** How the detail begins of a report that a payout is paid whose money came back, as a person has confirmed. */
export const PAID_AFTER_RETURN = 'the gateway reports success for a payout whose money came back'

/** The facts in a signed report of the gateway about an order. Null: the report leaves the field out. */
type Facts = { status: string; amount: Paise | null; orderId: string | null; utr: string | null }

/** The kinds of anomaly about single fields of a report that counts all the same. */
export const ABOUT_FIELDS: readonly AnomalyKind[] = ['unreadable-fields', 'fee-above-amount']

/** The anomaly of a report that counts although some of its fields are unreadable. */
export const unreadableFields = (unreadable: readonly string[]): Pick<Anomaly, 'kind' | 'detail'> => ({
  kind: 'unreadable-fields',
  detail: `the gateway says ${unreadable.join(' and ')}, which payoutd cannot read and did not store`,
})

/**
 * `detail` with the reported facts: `… (success, ₹100.00, order AP1, UTR 632611200001)`. They are part of the anomaly's
 * identity, so a report with other facts is another anomaly. The fee and the texts for people are left out, because an
 * honest gateway omits them at times.
 */
export const withFacts = (detail: string, { status, amount, orderId, utr }: Facts): string => {
  const facts = [
    status,
    amount === null ? 'no amount' : formatRupees(amount),
    orderId === null ? null : `order ${orderId}`,
    utr === null ? null : `UTR ${utr}`,
  ]
  return `${detail} (${facts.filter((fact) => fact !== null).join(', ')})`
}
