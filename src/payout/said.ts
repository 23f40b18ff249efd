import { formatRupees, type Paise } from './money.ts'

/** The facts in a signed statement of the gateway about an order. Null: it does not tell. */
type Facts = { status: string; amount: Paise | null; orderId: string | null; utr: string | null }

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
