import type { Decision, Payout } from './payout.ts'
import type { PublishedEnd } from './published.ts'
import { END_PUBLISHED, publishedAs } from './recall.ts'
import { anomaly, change } from './transition.ts'

/**
 * What a published end does to a payout that has come to another one since the ledger was set back: both have been told, and
 * which of them is true a person finds out. Null: they are the same. Where one says paid and the other not, the payout is in
 * review under a version above all that were published (`highest`), so that what the person decides is the last that is
 * told. The fee of the payment and the gateway's number stay known. What the gateway said to either end is not news then:
 * nothing but "paid" settles it besides.
 */
export function otherEnd(payout: Payout, end: PublishedEnd, highest: number): Decision | null {
  const sameUtr = end.utr === null || payout.utr === null || end.utr === payout.utr
  if (end.status === payout.state && (end.status !== 'paid' || sameUtr)) return null
  const detail = `${publishedAs(end)}${withUtr(end.utr)}, which the ledger lost: it has ${payout.state} (version ${payout.version})${withUtr(payout.utr)}`
  const told = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  const isPaid = (state: string) => state === 'paid'
  // What was rejected has no order, so that nothing else can become of it.
  if (isPaid(end.status) === isPaid(payout.state) || payout.orderNo === null) return told
  const after: Payout = {
    ...payout,
    ...{
      state: 'review',
      reason: END_PUBLISHED,
      version: Math.max(payout.version, end.version, highest) + 1,
    },
    ...{ unreported: false, utr: null },
    ...{ attempt: Math.max(1, payout.attempt), doubted: true, absenceConfirmed: false },
    ...(isPaid(end.status) && {
      agentpayOrderId: end.agentpayOrderId ?? payout.agentpayOrderId,
      fee: end.fee,
    }),
  }
  return { ...told, ...change(payout, after, 'OPERATOR', { note: detail }) }
}

const withUtr = (utr: string | null): string => (utr === null ? '' : `, UTR ${utr}`)
