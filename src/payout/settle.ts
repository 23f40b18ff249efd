import type { Doubt, OrderReport } from './evidence.ts'
import type { Instant } from './instant.ts'
import { formatRupees } from './money.ts'
import { neverSent } from './never-sent.ts'
import type { Decision, Payout } from './payout.ts'
import { withFacts } from './said.ts'
import { isEnd, type State } from './states.ts'
import {
  anomaly,
  askedInVain,
  askedSoon,
  become,
  change,
  type Fields,
  isAskedAbout,
  nextQueryAt,
  nothingAlive,
  type Timetable,
} from './transition.ts'

/**
 * What a signed statement of the gateway (a callback, or the answer to a query) does to its payout. `askedAt`: when a query
 * was asked; a callback's is now. Never throws: a contradiction is a value.
 */
export function settle(
  payout: Payout,
  report: OrderReport,
  source: 'CALLBACK' | 'QUERY',
  table: Timetable,
  now: Instant,
  askedAt: Instant = now,
): Decision {
  const { exchange } = report
  if (payout.attempt === 0) {
    const detail = `the gateway reports ${report.status} for a payout that was never sent`
    return neverSent(payout, source, withWhatItSays(detail, report), exchange)
  }
  if (report.doubt) return doubted(payout, report, report.doubt, source, table, now)
  const odd = (kind: string, detail: string) => {
    const decision = anomaly(payout, source, kind, withWhatItSays(detail, report), exchange)
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
      ? change(payout, completed(payout, report), source, exchange)
      : odd('contradiction', `the gateway reports ${report.status} for a payout that is ${payout.state}`)
  }
  switch (report.status) {
    case 'success': {
      const agentpayOrderId = report.agentpayOrderId ?? payout.agentpayOrderId
      return change(payout, become(payout, 'paid', { ...known, agentpayOrderId }), source, exchange)
    }
    case 'failed': {
      const failed = { ...known, reason: report.errorMessage ?? 'failed' }
      if (!mayBeOfAnother(payout, report))
        return change(payout, become(payout, 'failed', failed), source, exchange)
      const heard = { failed, ofAnother: isOfAnother(payout, report), source, askedAt }
      return change(payout, failedInDoubt(payout, heard, table, now), source, exchange)
    }
    case 'pending':
    case 'processing': {
      const queries = source === 'QUERY' ? payout.queries + 1 : payout.queries
      // Only the answer to its latest attempt tells which order that one has.
      const { agentpayOrderId } = hasEarlierOrders(payout) ? payout : known
      const told = { ...known, agentpayOrderId }
      const dueAt = nextQueryAt(queries, table, now)
      if (payout.state === 'review' && now >= payout.deadline) return change(payout, payout, source, exchange)
      return payout.state === 'processing'
        ? change(
            payout,
            { ...payout, ...told, ...UNDOUBTED, queries, dueAt: Math.min(dueAt, payout.deadline) },
            source,
            exchange,
          )
        : change(payout, become(payout, 'processing', { ...told, queries, dueAt }), source, exchange)
    }
  }
}

/** `detail` with the facts of the report that it is about. */
export const withWhatItSays = (
  detail: string,
  { status, unlisted, amount, agentpayOrderId, utr }: OrderReport,
): string => withFacts(detail, { status: unlisted ?? status, amount, orderId: agentpayOrderId, utr })

/** What a report of the same end tells that those before it left out. What was told stands. */
function completed(payout: Payout, { status, agentpayOrderId, fee, utr }: OrderReport): Payout {
  if (payout.state !== 'paid' || status !== 'success') return payout
  const told = {
    agentpayOrderId: payout.agentpayOrderId ?? agentpayOrderId,
    fee: payout.fee ?? fee,
    utr: payout.utr ?? utr,
  }
  const isNew =
    told.agentpayOrderId !== payout.agentpayOrderId || told.fee !== payout.fee || told.utr !== payout.utr
  return isNew ? { ...payout, ...told } : payout
}

/** It settles nothing; where payoutd asks about the payout anyway, it asks at once. */
function doubted(
  payout: Payout,
  report: OrderReport,
  doubt: Doubt,
  source: 'CALLBACK' | 'QUERY',
  table: Timetable,
  now: Instant,
): Decision {
  const { exchange } = report
  const after = isAskedAbout(payout) ? askedSoon(payout, table, now) : payout
  if (doubt === 'unsigned-parameters') return change(payout, after, source, exchange)
  return {
    ...anomaly(payout, source, AMBIGUOUS.kind, withWhatItSays(AMBIGUOUS.detail, report), exchange),
    change: { before: payout, after, source, exchange: null },
  }
}

/** The anomaly of a report whose signed text has another reading. */
export const AMBIGUOUS = {
  kind: 'ambiguous-callback',
  detail: 'the signed text has more than one reading, so it settles nothing, and the gateway is asked',
}

/** Whoever was not found for a while is there. */
const UNDOUBTED = { unknownSince: null, absences: 0, refusal: null }

/**
 * One order under its number failed, and another may be alive, or be about to be sent. What waits for the gateway is asked
 * about, and it failed once that is confirmed as absence is; where the gateway may pay two orders under one number, which a
 * query cannot tell apart, a person decides.
 */
function failedInDoubt(
  payout: Payout,
  heard: {
    failed: Fields & { reason: string }
    ofAnother: boolean
    source: 'CALLBACK' | 'QUERY'
    askedAt: Instant
  },
  table: Timetable,
  now: Instant,
): Payout {
  const { failed, ofAnother, source, askedAt } = heard
  const refusal = failed.reason
  if (!isAskedAbout(payout)) return payout
  if (source === 'CALLBACK') {
    return ofAnother ? payout : { ...askedSoon(payout, table, now), refusal }
  }
  if (ofAnother) return askedInVain(payout, table, now)
  const after = nothingAlive(payout, { askedAt, counts: true }, table, now)
  if (after) return { ...after, refusal }
  return table.resendWhenAbsent
    ? become(payout, 'failed', failed)
    : become(payout, 'review', { reason: 'failed-in-doubt' })
}

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
  // Of a payout that was sent again, the gateway may have more than one order.
  if (isOfAnother(payout, report) && (!payout.doubted || isEnd(payout.state))) {
    return {
      kind: 'order-id-mismatch',
      detail: `the gateway says ${report.agentpayOrderId}, known is ${payout.agentpayOrderId}`,
    }
  }
  return null
}

/** The gateway may have an order of an attempt before the latest, which is not alive, and reports it as failed. */
const hasEarlierOrders = ({ turnedAway, attempt }: Payout): boolean => turnedAway && attempt > 1

/** Whether a report of failure may be about one order of its payout, while another may be alive. */
function mayBeOfAnother(payout: Payout, { agentpayOrderId }: OrderReport): boolean {
  if (payout.doubted) return true
  // What waits after an attempt that was turned away has nothing that is alive.
  if (!hasEarlierOrders(payout) || payout.state === 'queued' || payout.state === 'held') return false
  return agentpayOrderId === null || agentpayOrderId !== payout.agentpayOrderId
}

const isOfAnother = (payout: Payout, report: OrderReport): boolean =>
  payout.agentpayOrderId !== null &&
  report.agentpayOrderId !== null &&
  payout.agentpayOrderId !== report.agentpayOrderId
