import { contradicts, unreadableFields, withFacts } from '../anomaly-details.ts'
import type { AnomalyKind } from '../anomaly-kinds.ts'
import type { Doubt, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { formatRupees } from '../money.ts'
import { END_PUBLISHED } from '../recovery/published-otherwise.ts'
import { isSameUtr } from '../utr.ts'
import { oddFee } from './fee.ts'
import { neverSent } from './ledger-lacks-attempt.ts'
import {
  answered,
  askedInVain,
  askedSoon,
  awaitAnswer,
  isAskedAbout,
  isConclusive,
  nextQueryAt,
  nothingAlive,
  type QueryPolicy,
} from './next-query.ts'
import { shown } from './order-shown.ts'
import type { Anomaly, Decision, Payout } from './payout.ts'
import { hasEarlierOrders, isOfPayment, mayBePaidByAnother, mayHaveSeveral } from './several-orders.ts'
import { isEnd } from './states.ts'
import { anomaly, become, change, type PayoutFields } from './transition.ts'

/**
 * Applies a signed report of the gateway (a callback, or the answer to a query) to its payout. `askedAt`: when payoutd sent
 * the query; for a callback, now. Never throws: it returns contradictions and unreadable fields as values.
 */
export function applyEvidence(
  payout: Payout,
  report: OrderReport,
  source: 'CALLBACK' | 'QUERY',
  queryPolicy: QueryPolicy,
  now: Instant,
  askedAt: Instant = now,
): Decision {
  const decision = settled(payout, report, source, queryPolicy, now, askedAt)
  if (report.doubt || report.status !== 'success') return decision
  if (!('change' in decision) || 'anomaly' in decision) return decision
  const odd = report.unreadable ? unreadableFields(report.unreadable) : oddFee(report.fee, payout.amount)
  if (!odd) return decision
  const { kind, detail } = odd
  return { ...anomaly(payout, source, kind, withWhatItSays(detail, report), report.exchange), ...decision }
}

function settled(
  payout: Payout,
  report: OrderReport,
  source: 'CALLBACK' | 'QUERY',
  queryPolicy: QueryPolicy,
  now: Instant,
  askedAt: Instant,
): Decision {
  const { exchange } = report
  if (payout.attempt === 0 && mayShowOrder(report)) return reportedThere(payout, report, source)
  if (report.doubt) return doubted(payout, report, report.doubt, source, queryPolicy, now)
  const odd = (kind: AnomalyKind, detail: string) => {
    const decision = anomaly(payout, source, kind, withWhatItSays(detail, report), exchange)
    const isBesides = kind === ANOTHER_ORDER || isOfUnknown(payout, report)
    const there = isBesides ? withAnotherOrder(payout) : shown(payout)
    const after = source === 'QUERY' && isAskedAbout(payout) ? askedInVain(there, queryPolicy, now) : there
    return after === payout
      ? decision
      : { ...decision, change: { before: payout, after, source, exchange: null } }
  }
  const mismatch = compare(payout, report)
  if (mismatch?.kind === 'amount-mismatch' && contradictsEnd(payout, report.status))
    return odd('contradiction', `${contradicts(report.status, payout.state)}, of another amount`)
  if (mismatch) return odd(mismatch.kind, mismatch.detail)
  if (report.status === 'unlisted') return odd('unlisted-status', 'the status is not in the contract')

  if (isEnd(payout.state)) {
    const otherDetail = contradictedDetail(payout, report)
    if (otherDetail) return odd(otherDetail.kind, otherDetail.detail)
    return agrees(payout, report.status) && !isStillAlive(payout, report, source)
      ? change(payout, completed(payout, report, source), source, exchange)
      : odd('contradiction', contradicts(report.status, payout.state))
  }
  switch (report.status) {
    case 'success':
      return change(payout, become(payout, 'paid', paidAs(payout, report)), source, exchange)
    case 'failed': {
      const agentpayOrderId = payout.agentpayOrderId ?? report.agentpayOrderId
      const reason = report.errorMessage ?? 'failed'
      const failed = { ...ofItsOrder(payout, report), agentpayOrderId, reason }
      if (!mayBeOfAnother(payout, report))
        return change(payout, become(payout, 'failed', failed), source, exchange)
      const evidence = { failed, ofAnother: isOfAnother(payout, report), source, askedAt }
      return change(payout, failedInDoubt(payout, evidence, queryPolicy, now), source, exchange)
    }
    case 'pending':
    case 'processing': {
      if (isOfAnother(payout, report)) return odd(ANOTHER_ORDER, anotherOrderText(payout, report))
      const queries = source === 'QUERY' ? payout.queries + 1 : payout.queries
      const reported = {
        ...ofItsOrder(payout, report),
        orderBesides: payout.orderBesides || (hasEarlierOrders(payout) && isOfUnknown(payout, report)),
      }
      const dueAt = nextQueryAt(queries, queryPolicy, now)
      if (payout.state === 'review' && (now >= payout.deadline || payout.reason === END_PUBLISHED))
        return change(payout, shown(payout), source, exchange)
      return payout.state === 'processing'
        ? change(
            payout,
            { ...payout, ...reported, ...UNDOUBTED, queries, dueAt: Math.min(dueAt, payout.deadline) },
            source,
            exchange,
          )
        : change(
            payout,
            become(payout, 'processing', { ...reported, orderShown: true, queries, dueAt }),
            source,
            exchange,
          )
    }
  }
}

/** One of payoutd's own requests, sent back by somebody, shows no order. Any other signed text does, even a doubtful one. */
export const mayShowOrder = (report: OrderReport): boolean => report.doubt !== 'of-a-request'

export const reportedThereText = (status: OrderReport['status']): string =>
  `the gateway reports ${status} for a payout that was never sent`

/** What a report does to a payout whose order the gateway cannot have: see `cannotBeThere`. */
export function reportedThere(payout: Payout, report: OrderReport, source: 'CALLBACK' | 'QUERY'): Decision {
  const detail = withWhatItSays(reportedThereText(report.status), report)
  return neverSent(payout, source, detail, report.exchange, 'order')
}

/** `detail` with the facts of the report. */
export const withWhatItSays = (
  detail: string,
  { status, unlisted, amount, agentpayOrderId, utr }: OrderReport,
): string => withFacts(detail, { status: unlisted ?? status, amount, orderId: agentpayOrderId, utr })

type ReportedFields = Pick<Payout, 'agentpayOrderId' | 'fee' | 'utr'>

/** What is known of the order that is paid: what is known of another order of the payout is not about this payment. */
function paidAs(payout: Payout, report: OrderReport): ReportedFields {
  // An attempt that was turned away is not paid, so without doubt the payment is of the latest.
  const isOfIt = !mayBePaidByAnother(payout) || isAboutItsOrder(payout, report)
  const { agentpayOrderId, fee, utr } = isOfIt ? toldBefore(payout) : TOLD_NOTHING
  return {
    agentpayOrderId: report.agentpayOrderId ?? agentpayOrderId,
    ...{ fee: report.fee ?? fee, utr: report.utr ?? utr },
  }
}

/** What is known of the order that the latest attempt has, after a report that may be about another one. */
function ofItsOrder(payout: Payout, report: OrderReport): ReportedFields {
  const agentpayOrderId = itsOrder(payout, report)
  const { fee, utr } = toldBefore(payout)
  return isAboutItsOrder(payout, report)
    ? { agentpayOrderId, fee: report.fee ?? fee, utr: report.utr ?? utr }
    : { agentpayOrderId, fee, utr }
}

const TOLD_NOTHING: ReportedFields = { agentpayOrderId: null, fee: null, utr: null }

/** If there may be several orders and none is known, nobody can say to which one the earlier fields belong. */
const toldBefore = (payout: Payout): ReportedFields =>
  mayHaveSeveral(payout) && payout.agentpayOrderId === null ? TOLD_NOTHING : payout

function isAboutItsOrder(payout: Payout, report: OrderReport): boolean {
  const agentpayOrderId = itsOrder(payout, report)
  return !mayHaveSeveral(payout) || (agentpayOrderId !== null && agentpayOrderId === report.agentpayOrderId)
}

/** Only the answer to the latest attempt shows which order that attempt has. */
const itsOrder = (payout: Payout, report: OrderReport): string | null =>
  payout.agentpayOrderId ?? (hasEarlierOrders(payout) ? null : report.agentpayOrderId)

/** The fields that earlier reports of the same end left out, or that its order is alive. What was reported before stands. */
function completed(payout: Payout, report: OrderReport, source: 'CALLBACK' | 'QUERY'): Payout {
  const { status, agentpayOrderId, fee, utr } = report
  if (payout.state === 'failed') {
    const { saidOtherwise } = payout
    if (status !== 'failed') return saidOtherwise === null ? { ...payout, saidOtherwise: 'alive' } : payout
    // A callback may be an old one that the gateway delivers again.
    return saidOtherwise === 'alive' && source === 'QUERY' ? { ...payout, saidOtherwise: null } : payout
  }
  if (payout.state !== 'paid' || status !== 'success') return payout
  if (mayBePaidByAnother(payout) && namesAnother(payout, report)) return payout
  const fields = {
    agentpayOrderId: payout.agentpayOrderId ?? agentpayOrderId,
    fee: payout.fee ?? fee,
    utr: payout.utr ?? utr,
  }
  const isNew =
    fields.agentpayOrderId !== payout.agentpayOrderId ||
    fields.fee !== payout.fee ||
    fields.utr !== payout.utr
  return isNew ? { ...payout, ...fields } : payout
}

/**
 * Another UTR or fee of what both call paid, or a report that does not name the payment of a payout that may have several orders:
 * it may be about another one. Of a payment with neither number nor UTR nobody can tell.
 */
function contradictedDetail(payout: Payout, report: OrderReport): Pick<Anomaly, 'kind' | 'detail'> | null {
  const { status, utr, fee, agentpayOrderId } = report
  if (payout.state !== 'paid') return null
  if (status === 'failed') {
    if (!namesAnother(payout, report) || !mayHaveSeveral(payout)) return null
    const said = `the gateway says that ${agentpayOrderId ?? 'an order'} failed, but it is not known which order of this payout was paid`
    return { kind: ANOTHER_ORDER, detail: said }
  }
  if (status !== 'success') return null
  if (utr !== null && payout.utr !== null && !isSameUtr(utr, payout.utr))
    return { kind: 'utr-mismatch', detail: `the gateway says UTR ${utr}, but the payout has ${payout.utr}` }
  if (mayBePaidByAnother(payout) && namesAnother(payout, report)) {
    const named = agentpayOrderId ?? (utr === null ? null : `UTR ${utr}`)
    const said = `the gateway says ${named}, but it is not known which order of this payout was paid`
    return named === null ? null : { kind: ANOTHER_ORDER, detail: said }
  }
  if (fee !== null && payout.fee !== null && fee !== payout.fee) {
    const said = `the gateway says a fee of ${formatRupees(fee)}, but the payout has ${formatRupees(payout.fee)}`
    return { kind: 'fee-mismatch', detail: said }
  }
  return null
}

/** Whether a payment is known by number or UTR, and the report names neither. */
const namesAnother = (payout: Payout, report: OrderReport): boolean =>
  (payout.agentpayOrderId ?? payout.utr) !== null && !isOfPayment(payout, report)

/**
 * A doubtful report ends nothing. If payoutd keeps asking about the payout, it asks at once; a payout that waits is not sent
 * meanwhile.
 */
function doubted(
  payout: Payout,
  report: OrderReport,
  doubt: Doubt,
  source: 'CALLBACK' | 'QUERY',
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const { exchange } = report
  const there = mayShowOrder(report) ? shown(payout) : awaitAnswer(payout, now)
  const after = isAskedAbout(there) ? askedSoon(there, queryPolicy, now) : there
  if (doubt === 'unsigned-parameters') return change(payout, after, source, exchange)
  return {
    ...anomaly(
      payout,
      source,
      IN_DOUBT[doubt].kind,
      withWhatItSays(IN_DOUBT[doubt].detail, report),
      exchange,
    ),
    change: { before: payout, after, source, exchange: null },
  }
}

/** The anomalies of reports in doubt, apart from unsigned parameters: only the first shows an order. */
export const IN_DOUBT = {
  'several-readings': {
    kind: 'ambiguous-callback',
    detail:
      'the signed text can be read in more than one way, so it changes nothing and payoutd queries the gateway',
  },
  'of-a-request': {
    kind: 'request-sent-back',
    detail:
      'the signed text is that of a request of payoutd, so it changes nothing and payoutd queries the gateway',
  },
} as const

/** Clears the doubts: the gateway has the order, although queries did not find it for a while. */
const UNDOUBTED = { orderShown: true, unknownSince: null, notFoundCount: 0, refusal: null }

/**
 * One order under its number failed; another may be alive, or about to be sent. If payoutd waits for the gateway, it asks,
 * and the payout fails once that is confirmed, as absence is. If the gateway may pay two orders under one number, which a
 * query cannot tell apart, a person decides. Once the known order has failed, a payment of the order besides counts.
 */
function failedInDoubt(
  before: Payout,
  evidence: {
    failed: PayoutFields & { reason: string }
    ofAnother: boolean
    source: 'CALLBACK' | 'QUERY'
    askedAt: Instant
  },
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout {
  const { failed, ofAnother, source, askedAt } = evidence
  const payout = before.orderBesides && !ofAnother ? { ...before, doubted: true } : before
  const refusal = failed.reason
  if (!isAskedAbout(payout))
    return source === 'QUERY' ? answered(payout, { askedAt, counts: isConclusive(queryPolicy) }) : payout
  if (source === 'CALLBACK') {
    return ofAnother ? payout : { ...askedSoon(payout, queryPolicy, now), refusal }
  }
  if (ofAnother) return askedInVain(payout, queryPolicy, now)
  const after = nothingAlive(payout, { askedAt, counts: true }, queryPolicy, now)
  if (after) return { ...after, refusal }
  const isAnyAlive =
    payout.orderBesides ||
    // The failure may be that of the order after which a person sent it again.
    payout.absenceConfirmed ||
    // An attempt that the ledger lost may be alive at any account.
    payout.accountId === null ||
    (payout.orderShown && payout.agentpayOrderId === null)
  return queryPolicy.duplicatesRefused && !isAnyAlive
    ? become(payout, 'failed', failed)
    : become(payout, 'review', { reason: 'failed-in-doubt' })
}

/** The gateway was asked because it reported a failed order as alive, and says so again: that is no late news. */
const isStillAlive = (
  { state, saidOtherwise }: Payout,
  { status }: OrderReport,
  source: 'CALLBACK' | 'QUERY',
): boolean => source === 'QUERY' && state === 'failed' && saidOtherwise === 'alive' && status !== 'failed'

/** A late "processing" agrees with any end that the gateway itself reported, and with a bank's UTR. */
function agrees({ state, unreported }: Payout, status: OrderReport['status']): boolean {
  if (status === 'pending' || status === 'processing')
    return state === 'paid' || (state === 'failed' && !unreported)
  return (state === 'paid' && status === 'success') || (state === 'failed' && status === 'failed')
}

const contradictsEnd = (payout: Payout, status: OrderReport['status']): boolean =>
  isEnd(payout.state) && status !== 'unlisted' && !agrees(payout, status)

function compare(payout: Payout, report: OrderReport): Pick<Anomaly, 'kind' | 'detail'> | null {
  if (payout.orderNo !== report.mchOrderNo) {
    return { kind: 'order-mismatch', detail: 'the order number is of another attempt series' }
  }
  // If the payout was sent again, the gateway may have more than one order of it.
  if (isOfAnother(payout, report) && (!payout.doubted || isEnd(payout.state))) {
    return { kind: ANOTHER_ORDER, detail: anotherOrderText(payout, report) }
  }
  if (report.amount !== payout.amount) {
    const says = report.amount === null ? 'no amount' : formatRupees(report.amount)
    return {
      kind: 'amount-mismatch',
      detail: `the gateway says ${says}, ours is ${formatRupees(payout.amount)}`,
    }
  }
  return null
}

/** The kind of an anomaly about an order besides the known one. */
export const ANOTHER_ORDER = 'order-id-mismatch'

/** A payout that was sent once should have one order. The other one settles nothing unless the known one fails, which is no longer the end. */
const withAnotherOrder = (payout: Payout): Payout =>
  isEnd(payout.state) ? payout : { ...shown(payout), orderBesides: true }

const anotherOrderText = (payout: Payout, report: OrderReport): string =>
  `the gateway says ${report.agentpayOrderId}, but the payout has ${payout.agentpayOrderId}`

/** Whether a report of failure may be about one order of its payout, while another may be alive. */
function mayBeOfAnother(payout: Payout, { agentpayOrderId }: OrderReport): boolean {
  if (mayBePaidByAnother(payout)) return true
  if (!hasEarlierOrders(payout)) return false
  return agentpayOrderId === null || agentpayOrderId !== payout.agentpayOrderId
}

/** It names an order while none is known: whether it is that of the latest attempt only the answer to that tells. */
const isOfUnknown = (payout: Payout, report: OrderReport): boolean =>
  payout.agentpayOrderId === null && report.agentpayOrderId !== null

const isOfAnother = (payout: Payout, report: OrderReport): boolean =>
  payout.agentpayOrderId !== null &&
  report.agentpayOrderId !== null &&
  payout.agentpayOrderId !== report.agentpayOrderId
