import type { Decision, Payout } from './payout.ts'
import type { PublishedEnd, PublishedTransition } from './published.ts'
import { END_PUBLISHED, publishedAs, SENT, submitsAmong } from './recall.ts'
import { isEnd } from './states.ts'
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
  // What was rejected has no order, so that nothing else can become of it; and a payment that was told last stands.
  const stands = payout.orderNo === null || (isPaid(payout.state) && payout.version > end.version)
  if (isPaid(end.status) === isPaid(payout.state) || stands) return told
  const after = unsettled(payout, Math.max(end.version, highest))
  const known = isPaid(end.status) && {
    agentpayOrderId: end.agentpayOrderId ?? payout.agentpayOrderId,
    fee: end.fee,
  }
  return { ...told, ...change(payout, { ...after, ...known }, 'OPERATOR', { note: detail }) }
}

/**
 * What it does to a payout that has ended, other than by a payment, that it was published as sent, or as queued to be, in what
 * its own story lacks (`unknown`, in its order) and by no end there: the ledger lost that, perhaps with an attempt, and so
 * whoever ended it did not know of it. Null: it was not.
 */
export function sentSince(
  payout: Payout,
  unknown: readonly PublishedTransition[],
  highest: number,
): Decision | null {
  const since = unknown.slice(unknown.findLastIndex(({ toState }) => isEnd(toState)) + 1)
  const last = since.findLast(({ toState }) => toState === 'queued' || SENT.includes(toState))
  if (!last || payout.state === 'paid') return null
  const detail = `${publishedAs({ ...last, status: last.toState })}, which the ledger lost: it has ${payout.state} (version ${payout.version})`
  const told = anomaly(payout, 'OPERATOR', END_PUBLISHED, detail, null)
  if (payout.orderNo === null) return told
  // The attempt, if there was one, may be at any account.
  const lost = {
    ...{ attempt: Math.max(1, payout.attempt) + submitsAmong(since), accountId: null },
    ...{ turnedAway: true, agentpayOrderId: null },
  }
  return {
    ...told,
    ...change(payout, { ...unsettled(payout, highest), ...lost }, 'OPERATOR', { note: detail }),
  }
}

/** For a person to decide about, above all that was published. */
const unsettled = (payout: Payout, highest: number): Payout => ({
  ...payout,
  ...{ state: 'review', reason: END_PUBLISHED, version: Math.max(payout.version, highest) + 1 },
  ...{ unreported: false, utr: null },
  ...{ attempt: Math.max(1, payout.attempt), doubted: true, absenceConfirmed: false },
})

const withUtr = (utr: string | null): string => (utr === null ? '' : `, UTR ${utr}`)
