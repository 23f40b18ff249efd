import { unreadableFields, withFacts } from '../anomaly-details.ts'
import type { Instant } from '../instant.ts'
import { formatRupees } from '../money.ts'
import { AMBIGUOUS } from '../payout/apply-evidence.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import { isSameUtr } from '../utr.ts'
import type { PayinReport } from './gateway-answers.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { anomaly, askAgain, askedInVain, askSoon, become, change, endUnpaid, isOver } from './transition.ts'

/**
 * What a signed statement of the gateway (a callback, or the answer to a query) does to its payin. Never
 * throws: a contradiction is a value, and so is what cannot be read of a payment. A payin that is paid stays
 * paid; one that failed or expired can be paid late.
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
    const change = { before: payin, after: askSoon(payin, queryPolicy, now), source }
    if (report.doubt === 'unsigned-parameters') return { change: { ...change, exchange } }
    const told = anomaly(payin, source, AMBIGUOUS.kind, withWhatItSays(AMBIGUOUS.detail, report), exchange)
    return { ...told, change: { ...change, exchange: null } }
  }
  const mismatch = compare(payin, report)
  const odd = (kind: string, detail: string): PayinDecision => {
    const decision = anomaly(payin, source, kind, withWhatItSays(detail, report), exchange)
    if (source !== 'QUERY' || payin.state === 'paid') return decision
    return {
      ...decision,
      change: { before: payin, after: askedInVain(payin, queryPolicy, now), source, exchange: null },
    }
  }
  if (mismatch) return odd(mismatch.kind, mismatch.detail)
  const payOrderId = payin.payOrderId ?? report.payOrderId
  const known = { ...payin, payOrderId, ...UNDOUBTED }
  const move = (after: Payin) => change(payin, after, source, exchange)
  const stay = () => move(source === 'QUERY' ? askAgain(known, queryPolicy, now) : known)
  switch (payin.state) {
    case 'paid': {
      if (report.status === 'paid' && utr !== null && payin.utr !== null && !isSameUtr(utr, payin.utr))
        return odd('utr-mismatch', `the gateway says UTR ${utr}, known is ${payin.utr}`)
      if (report.status !== 'failed')
        return move({ ...known, utr: payin.utr ?? utr, paidAt: payin.paidAt ?? paidAt })
      return odd('contradiction', 'the gateway reports failed for a payin that is paid')
    }
    case 'failed':
    case 'expired':
      return report.status === 'paid' ? move(become(known, 'paid', { utr, paidAt })) : stay()
    case 'creating':
    case 'unknown':
    case 'open':
    case 'review':
      if (report.status === 'paid') return move(become(known, 'paid', { utr, paidAt }))
      if (report.status === 'failed') {
        return move(endUnpaid(known, 'failed', report.errorMessage ?? 'failed', queryPolicy, now))
      }
      if (payin.state === 'open') {
        return source === 'QUERY' && isOver(payin, now)
          ? move(endUnpaid(known, 'expired', null, queryPolicy, now))
          : stay()
      }
      return move(become(known, 'open', { dueAt: nextQueryAt(0, queryPolicy, now) }))
  }
}

/** `detail` with the facts of the report that it is about. */
export const withWhatItSays = (detail: string, { status, amount, payOrderId, utr }: PayinReport): string =>
  withFacts(detail, { status, amount, orderId: payOrderId, utr })

/** Whoever was not found for a while is there. */
const UNDOUBTED = { unknownSince: null, notFoundCount: 0 }

function compare(payin: Payin, report: PayinReport): { kind: string; detail: string } | null {
  const differ = (kind: string, theirs: unknown, ours: unknown) => ({
    kind,
    detail: `the gateway says ${theirs}, ours is ${ours}`,
  })
  if (report.amount !== payin.amount) {
    const theirs = report.amount === null ? 'no amount' : formatRupees(report.amount)
    return differ('amount-mismatch', theirs, formatRupees(payin.amount))
  }
  if (report.currency !== null && report.currency !== payin.currency) {
    return differ('currency-mismatch', report.currency, payin.currency)
  }
  if (payin.payOrderId !== null && report.payOrderId !== null && payin.payOrderId !== report.payOrderId) {
    return differ('order-id-mismatch', report.payOrderId, payin.payOrderId)
  }
  return null
}
