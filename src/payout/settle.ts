import type { Doubt, Exchange, OrderReport } from './evidence.ts'
import type { Instant } from './instant.ts'
import { formatRupees } from './money.ts'
import { neverSent } from './never-sent.ts'
import type { Decision, Payout } from './payout.ts'
import { isEnd, type State } from './states.ts'
import {
  anomaly,
  askedInVain,
  become,
  change,
  isAskedAbout,
  nextQueryAt,
  soonestQueryAt,
  type Timetable,
} from './transition.ts'

/**
 * What a signed statement of the gateway (a callback, or the answer to a query) does to its payout. Never
 * throws: a contradiction is a value.
 */
export function settle(
  payout: Payout,
  report: OrderReport,
  source: 'CALLBACK' | 'QUERY',
  table: Timetable,
  now: Instant,
): Decision {
  const { exchange } = report
  if (payout.attempt === 0) {
    const detail = `the gateway reports ${report.status} for a payout that was never sent`
    return neverSent(payout, source, detail, exchange)
  }
  if (report.doubt) return doubted(payout, report.doubt, source, exchange, table, now)
  const odd = (kind: string, detail: string) => {
    const decision = anomaly(payout, source, kind, detail, exchange)
    return source === 'QUERY' && isAskedAbout(payout)
      ? {
          ...decision,
          change: { before: payout, after: askedInVain(payout, table, now), source, exchange: null },
        }
      : decision
  }
  const mismatch = compare(payout, report)
  if (mismatch) return odd(mismatch.kind, mismatch.detail)
  if (report.status === 'unlisted') return odd('unlisted-status', 'the status is not in the contract')

  const known = {
    agentpayOrderId: payout.agentpayOrderId ?? report.agentpayOrderId,
    fee: report.fee ?? payout.fee,
    utr: report.utr ?? payout.utr,
  }
  if (isEnd(payout.state)) {
    return agrees(payout.state, report.status)
      ? change(payout, payout, source, exchange)
      : odd('contradiction', `the gateway reports ${report.status} for a payout that is ${payout.state}`)
  }
  switch (report.status) {
    case 'success':
      return change(payout, become(payout, 'paid', known), source, exchange)
    case 'failed':
      return change(
        payout,
        become(payout, 'failed', { ...known, reason: report.errorMessage ?? 'failed' }),
        source,
        exchange,
      )
    case 'pending':
    case 'processing': {
      const queries = source === 'QUERY' ? payout.queries + 1 : payout.queries
      const dueAt = nextQueryAt(queries, table, now)
      if (payout.state === 'review' && now >= payout.deadline) return change(payout, payout, source, exchange)
      return payout.state === 'processing'
        ? change(
            payout,
            { ...payout, ...known, ...UNDOUBTED, queries, dueAt: Math.min(dueAt, payout.deadline) },
            source,
            exchange,
          )
        : change(payout, become(payout, 'processing', { ...known, queries, dueAt }), source, exchange)
    }
  }
}

/** It settles nothing; where payoutd asks about the payout anyway, it asks at once. */
function doubted(
  payout: Payout,
  doubt: Doubt,
  source: 'CALLBACK' | 'QUERY',
  exchange: Exchange,
  table: Timetable,
  now: Instant,
): Decision {
  const soonest = soonestQueryAt(payout.askedAt, table, now)
  const after =
    isAskedAbout(payout) && payout.dueAt !== null && soonest < payout.dueAt
      ? { ...payout, dueAt: soonest }
      : payout
  if (doubt === 'unsigned-parameters') return change(payout, after, source, exchange)
  return {
    ...anomaly(payout, source, AMBIGUOUS.kind, AMBIGUOUS.detail, exchange),
    change: { before: payout, after, source, exchange: null },
  }
}

/** The anomaly of a report whose signed text has another reading. */
export const AMBIGUOUS = {
  kind: 'ambiguous-callback',
  detail: 'the signed text has more than one reading, so it settles nothing, and the gateway is asked',
}

/** Whoever was not found for a while is there. */
const UNDOUBTED = { unknownSince: null, absences: 0 }

/** A late "processing" agrees with any end that the gateway itself reported. */
function agrees(state: State, status: OrderReport['status']): boolean {
  if (status === 'pending' || status === 'processing') return state === 'paid' || state === 'failed'
  return (state === 'paid' && status === 'success') || (state === 'failed' && status === 'failed')
}

function compare(payout: Payout, report: OrderReport): { kind: string; detail: string } | null {
  if (payout.orderNo !== report.mchOrderNo) {
    return { kind: 'order-mismatch', detail: 'the order number is of another attempt series' }
  }
  if (report.amount !== payout.amount) {
    const says = report.amount === null ? 'no amount' : formatRupees(report.amount)
    return {
      kind: 'amount-mismatch',
      detail: `the gateway says ${says}, ours is ${formatRupees(payout.amount)}`,
    }
  }
  if (payout.agentpayOrderId && report.agentpayOrderId && payout.agentpayOrderId !== report.agentpayOrderId) {
    return {
      kind: 'order-id-mismatch',
      detail: `the gateway says ${report.agentpayOrderId}, known is ${payout.agentpayOrderId}`,
    }
  }
  return null
}
