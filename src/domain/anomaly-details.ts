import { formatRupees, type Paise } from './money.ts'
import type { State } from './payout/states.ts'

/** How the detail of a contradiction begins. */
export const contradicts = (status: string, state: State): string =>
  `the gateway reports ${status} for a payout that is ${state}`

/**
 * How the details of what the gateway says against the end of a payout begin: that the order of a paid one failed, or that
 * that of a failed or cancelled one is paid or alive. Of an end that the payout had before, or may have had, that says nothing.
 */
export function saidAgainst(state: State): string[] {
  if (state === 'paid') return [contradicts('failed', state)]
  if (state !== 'failed' && state !== 'cancelled') return []
  return ['success', 'pending', 'processing'].map((status) => contradicts(status, state))
}

/** The facts in a signed statement of the gateway about an order. Null: it does not tell. */
type Facts = { status: string; amount: Paise | null; orderId: string | null; utr: string | null }

/** The kinds of what is odd about fields of a report that counts all the same. */
export const ABOUT_FIELDS = ['unreadable-fields', 'fee-above-amount']

/** The anomaly of a report that counts, but for fields that nobody can read. */
export const unreadableFields = (unreadable: readonly string[]): { kind: string; detail: string } => ({
  kind: 'unreadable-fields',
  detail: `the gateway says ${unreadable.join(' and ')}, which cannot be read and is not kept with it`,
})

/**
 * `detail` with what was said: `… (success, ₹100.00, order AP1, UTR 632611200001)`. It is part of what an anomaly is known
 * by, so that what says something else is another one. The fee and the texts for people are not, as an honest gateway leaves
 * them out at times.
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
