import { unreadableFields, withFacts } from '../anomaly-details.ts'
import type { AnomalyKind } from '../anomaly-kinds.ts'
import type { Instant } from '../instant.ts'
import { formatRupees } from '../money.ts'
import { ANOTHER_ORDER, IN_DOUBT } from '../payout/apply-evidence.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import type { Anomaly } from '../payout/payout.ts'
import { isSameUtr } from '../utr.ts'
import type { PayinReport } from './gateway-answers.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { isEnd, type PayinEnd } from './states.ts'
import { anomaly, askAgain, askAnew, askedInVain, askSoon, become, change, isOver } from './transition.ts'

/**
 * Applies a signed report of the gateway (a callback, or the answer to a query) to its payin. Never throws: it returns
 * contradictions and unreadable fields as values. A paid payin stays paid; a failed or expired one can be paid late.
 */
export function applyEvidence(
  payin: Payin,
  report: PayinReport,
  source: 'CALLBACK' | 'QUERY',
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  const decision = settled(payin, report, source, queryPolicy, now)
  if (!report.unreadable || report.doubt || report.status !== 'paid') return decision
  if (!('change' in decision) || 'anomaly' in decision) return decision
  const { kind, detail } = unreadableFields(report.unreadable)
  return { ...anomaly(payin, source, kind, withWhatItSays(detail, report), report.exchange), ...decision }
}

function settled(
  payin: Payin,
  report: PayinReport,
  source: 'CALLBACK' | 'QUERY',
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  const { exchange, utr, paidAt } = report
  if (report.doubt) {
    const there = report.doubt === 'of-a-request' ? payin : shown(payin)
    const change = { before: payin, after: askSoon(there, queryPolicy, now), source }
    if (report.doubt === 'unsigned-parameters') return { change: { ...change, exchange } }
    const { kind, detail } = IN_DOUBT[report.doubt]
    const decision = anomaly(payin, source, kind, withWhatItSays(detail, report), exchange)
    return { ...decision, change: { ...change, exchange: null } }
  }
  const mismatch = compare(payin, report)
  const odd = (kind: AnomalyKind, detail: string): PayinDecision => {
    const decision = anomaly(payin, source, kind, withWhatItSays(detail, report), exchange)
    const there = shown(payin)
    const isAnswer = source === 'QUERY' && payin.state !== 'paid' && payin.state !== 'creating'
    const after = isAnswer ? askedInVain(there, queryPolicy, now) : there
    return after === payin ? decision : { ...decision, ...unmoved(payin, after, source) }
  }
  if (mismatch) {
    const { kind, detail } = mismatch
    if (kind === ANOTHER_ORDER) return besides(payin, report, source, { kind, detail }, queryPolicy, now)
    const isPayment = report.status === 'paid' || namesPayment(report)
    if (!isPayment || isEnd(payin.state) || isLeft(payin)) return odd(kind, detail)
    const after = askAnew(leftToPerson(shown(payin), PAYMENT_NAMED, now), queryPolicy, now)
    const decision = anomaly(payin, source, kind, withWhatItSays(detail, report), exchange)
    return { ...decision, ...unmoved(payin, after, source) }
  }
  const payOrderId = payin.payOrderId ?? report.payOrderId
  const known = { ...payin, payOrderId, ...UNDOUBTED }
  const move = (after: Payin) => change(payin, after, source, exchange)
  const asked = (after: Payin) => (source === 'QUERY' ? askAgain(after, queryPolicy, now) : after)
  const paid = () => move(become(known, 'paid', now, { utr, paidAt }))
  const endUnpaid = (state: PayinEnd, reason: string | null) =>
    move(asked(become(known, state, now, { reason })))
  const stay = () => move(asked(known))
  if (report.status !== 'paid' && payin.state !== 'paid' && namesPayment(report)) {
    if (isEnd(payin.state) || isLeft(payin)) return odd(PAYMENT_NAMED, NAMED)
    const decision = anomaly(payin, source, PAYMENT_NAMED, withWhatItSays(NAMED, report), exchange)
    return { ...decision, ...move(askAnew(leftToPerson(known, PAYMENT_NAMED, now), queryPolicy, now)) }
  }
  if (report.status === 'unlisted') return odd('unlisted-status', 'the status is not in the contract')
  switch (payin.state) {
    case 'paid': {
      if (report.status !== 'failed' && utr !== null && payin.utr !== null && !isSameUtr(utr, payin.utr))
        return odd('utr-mismatch', `the gateway says UTR ${utr}, but the payin has ${payin.utr}`)
      if (report.status === 'failed')
        return odd('contradiction', 'the gateway reports failed for a payin that is paid')
      if (report.status === 'pending') return move(known)
      return move({ ...known, utr: payin.utr ?? utr, paidAt: payin.paidAt ?? paidAt })
    }
    case 'failed':
    case 'expired':
      return report.status === 'paid' ? paid() : stay()
    case 'creating':
    case 'unknown':
    case 'open':
    case 'review':
      if (report.status === 'paid') return paid()
      if (isLeft(payin)) return stay()
      if (report.status === 'failed') return endUnpaid('failed', report.errorMessage ?? 'failed')
      if (payin.state === 'open')
        return source === 'QUERY' && isOver(payin, now) ? endUnpaid('expired', null) : stay()
      return move(become(known, 'open', now, { dueAt: nextQueryAt(0, queryPolicy, now) }))
  }
}

/**
 * Why a payin is in review: the gateway named a UTR or a payment time, but does not call it paid. Only "paid" or a person
 * ends it, because no other report rules out that somebody paid.
 */
const PAYMENT_NAMED = 'payment-named'
const NAMED = 'the gateway names a UTR or the time of a payment of a payin that it does not call paid'

/**
 * Why a payin is in review: the gateway showed an order of it besides the known one, which did not fail. The same ends it, because
 * the failure of one order says nothing about the other.
 */
export const ORDER_BESIDES = 'order-besides'

const isLeft = ({ state, reason }: Payin): boolean =>
  state === 'review' && (reason === PAYMENT_NAMED || reason === ORDER_BESIDES)

const leftToPerson = (payin: Payin, reason: string, now: Instant): Payin =>
  payin.state === 'review' ? { ...payin, reason } : become(payin, 'review', now, { reason })

/** What a report of another order of the payin does, at whatever account: it is an anomaly, and leaves an open payin to a person. */
export function besides(
  payin: Payin,
  report: PayinReport,
  source: 'CALLBACK' | 'QUERY',
  { kind, detail }: Pick<Anomaly, 'kind' | 'detail'>,
  queryPolicy: QueryPolicy,
  now: Instant,
): PayinDecision {
  const decision = anomaly(payin, source, kind, withWhatItSays(detail, report), report.exchange)
  if (report.doubt === 'of-a-request' || payin.state === 'paid') return decision
  if (isEnd(payin.state))
    return source === 'QUERY'
      ? { ...decision, ...unmoved(payin, askAgain(payin, queryPolicy, now), source) }
      : decision
  const isAlive = report.status !== 'failed' || namesPayment(report)
  const isNews = isAlive && payin.reason !== ORDER_BESIDES
  const there = isNews ? leftWithBesides(payin, queryPolicy, now) : shown(payin)
  const after = !isNews && source === 'QUERY' ? askedInVain(there, queryPolicy, now) : there
  return after === payin ? decision : { ...decision, ...unmoved(payin, after, source) }
}

/** Stores the payin; the anomaly beside it keeps the evidence. */
const unmoved = (before: Payin, after: Payin, source: 'CALLBACK' | 'QUERY') => ({
  change: { before, after, source, exchange: null },
})

/** The same payin, which has not ended, after the gateway showed another order of it that may be alive. */
export const leftWithBesides = (payin: Payin, queryPolicy: QueryPolicy, now: Instant): Payin =>
  askAnew(leftToPerson(shown(payin), ORDER_BESIDES, now), queryPolicy, now)

const namesPayment = ({ utr, paidAt, unreadable = [] }: PayinReport): boolean =>
  utr !== null || paidAt !== null || unreadable.some((field) => /^(channelPayNo|paySuccTime) /.test(field))

/** `detail` with the facts of the report. */
export const withWhatItSays = (
  detail: string,
  { status, unlisted, amount, payOrderId, utr }: PayinReport,
): string => withFacts(detail, { status: unlisted ?? status, amount, orderId: payOrderId, utr })

/** Clears the doubts: the gateway has the order, although queries did not find it for a while. */
const UNDOUBTED = { orderShown: true, unknownSince: null, notFoundCount: 0 }

/** The same payin after a signed report of its order, even one that is not applied. */
const shown = (payin: Payin): Payin =>
  isEnd(payin.state) || (payin.orderShown && payin.notFoundCount === 0)
    ? payin
    : { ...payin, orderShown: true, notFoundCount: 0 }

function compare(payin: Payin, report: PayinReport): Pick<Anomaly, 'kind' | 'detail'> | null {
  const differ = (kind: AnomalyKind, theirs: unknown, ours: unknown) => ({
    kind,
    detail: `the gateway says ${theirs}, ours is ${ours}`,
  })
  if (payin.payOrderId !== null && report.payOrderId !== null && payin.payOrderId !== report.payOrderId) {
    return differ(ANOTHER_ORDER, report.payOrderId, payin.payOrderId)
  }
  if (report.amount !== payin.amount) {
    const theirs = report.amount === null ? 'no amount' : formatRupees(report.amount)
    return differ('amount-mismatch', theirs, formatRupees(payin.amount))
  }
  if (report.currency !== null && report.currency !== payin.currency) {
    return differ('currency-mismatch', report.currency, payin.currency)
  }
  return null
}
