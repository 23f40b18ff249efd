import type { ApplyAnswer } from './answers.ts'
import type { EvidenceSource, Exchange, OrderReport } from './evidence.ts'
import type { Instant } from './instant.ts'
import type { Anomaly, Decision, Payout } from './payout.ts'
import { isEnd, mayMove, type State } from './states.ts'

/** When to look again. From the merchant's dialect; all in milliseconds. */
export type Timetable = {
  /** Asking about a payout that was accepted or is unknown: the first waits, then the last one for ever. */
  queryAfterMs: readonly number[]
  /** How long after a result became unknown a "not found" begins to count. */
  graceMs: number
  /** How many counted "not found" prove absence. */
  confirmations: number
  /** A proved-absent order may be sent again under its number: the gateway refuses duplicates. */
  resendWhenAbsent: boolean
}

type Fields = Partial<Omit<Payout, 'merchantId' | 'payoutId' | 'version' | 'state'>>

/**
 * The next state with its fields. `dueAt` is what the caller wants to happen next; it never lies beyond the
 * deadline, at which a person takes over. Throws on a move that the state table forbids: a bug.
 */
export function become(payout: Payout, state: State, fields: Fields): Payout {
  if (!mayMove(payout.state, state, payout.attempt)) {
    throw new Error(
      `payout ${payout.merchantId}:${payout.payoutId} cannot go from ${payout.state} to ${state}`,
    )
  }
  const next = {
    ...payout,
    reason: null,
    unknownSince: null,
    ready: false,
    queries: 0,
    absences: 0,
    ...fields,
  }
  return { ...next, state, version: payout.version + 1, dueAt: dueAt(state, next) }
}

function dueAt(state: State, { dueAt, deadline }: Payout): Instant | null {
  if (isEnd(state) || state === 'review') return null
  // A lease is not cut short by the deadline: while it lasts, its owner may still be sending.
  return state === 'submitting' ? dueAt : Math.min(dueAt ?? deadline, deadline)
}

const change = (
  before: Payout,
  after: Payout,
  source: EvidenceSource,
  exchange: Exchange | null,
): Decision => ({
  change: { before, after, source, exchange },
})

export function anomaly(
  payout: Payout,
  source: EvidenceSource,
  kind: string,
  detail: string,
  exchange: Exchange | null,
): { anomaly: Anomaly } {
  const { merchantId, payoutId, orderNo } = payout
  return { anomaly: { merchantId, payoutId, orderNo, kind, detail, source, exchange } }
}

const nextQueryAt = (queries: number, table: Timetable, now: Instant): Instant =>
  now + (table.queryAfterMs[Math.min(queries, table.queryAfterMs.length - 1)] ?? 60_000)

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
  const odd = (kind: string, detail: string) => anomaly(payout, source, kind, detail, exchange)
  const mismatch = compare(payout, report)
  if (mismatch) return odd(mismatch.kind, mismatch.detail)
  if (payout.attempt === 0)
    return odd('never-sent', `the gateway reports ${report.status} for a payout that was never sent`)
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
            { ...payout, ...known, queries, dueAt: Math.min(dueAt, payout.deadline) },
            source,
            exchange,
          )
        : change(payout, become(payout, 'processing', { ...known, queries, dueAt }), source, exchange)
    }
  }
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
    return {
      kind: 'amount-mismatch',
      detail: `the gateway says ${report.amount ?? 'no amount'}, ours is ${payout.amount} paise`,
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

/**
 * What the answer to an apply call does to the payout it was made for. An answer counts only for the
 * payout's current attempt while that is open (submitting, or unknown since); otherwise it is evidence
 * that is kept, and it moves nothing.
 */
export function recordApply(
  payout: Payout,
  attempt: number,
  answer: ApplyAnswer,
  table: Timetable,
  now: Instant,
): Decision {
  const { exchange } = answer
  const knownId = payout.agentpayOrderId
  if (answer.kind === 'accepted' && knownId !== null && knownId !== answer.agentpayOrderId) {
    return anomaly(
      payout,
      'APPLY',
      'order-id-mismatch',
      `apply says ${answer.agentpayOrderId}, known is ${knownId}`,
      exchange,
    )
  }
  const open = payout.attempt === attempt && (payout.state === 'submitting' || payout.state === 'unknown')
  if (!open) {
    const contradicts =
      answer.kind === 'refused' && (payout.state === 'paid' || payout.state === 'processing')
    return contradicts
      ? anomaly(
          payout,
          'APPLY',
          'contradiction',
          `apply was refused (${answer.code}), yet the payout is ${payout.state}`,
          exchange,
        )
      : change(payout, overtaken(payout, answer), 'APPLY', exchange)
  }
  switch (answer.kind) {
    case 'accepted': {
      const ended = answer.status === 'success' || answer.status === 'failed'
      const dueAt = ended ? now : nextQueryAt(0, table, now)
      const fields = { agentpayOrderId: answer.agentpayOrderId, fee: answer.fee, dueAt }
      return change(payout, become(payout, 'processing', fields), 'APPLY', exchange)
    }
    case 'refused':
      return change(
        payout,
        become(payout, 'failed', { reason: answer.message || answer.code }),
        'APPLY',
        exchange,
      )
    case 'not-sent':
    case 'retry-later': {
      const reason = answer.kind === 'not-sent' ? answer.reason : answer.code
      const dueAt = now + backOffMs(payout.attempt)
      return change(payout, become(payout, 'queued', { reason, dueAt }), 'APPLY', exchange)
    }
    case 'duplicate':
    case 'unknown': {
      if (payout.state === 'unknown') return change(payout, payout, 'APPLY', exchange)
      const reason = answer.kind === 'unknown' ? answer.reason : 'duplicate'
      const fields = { reason, unknownSince: now, dueAt: nextQueryAt(0, table, now) }
      return change(payout, become(payout, 'unknown', fields), 'APPLY', exchange)
    }
  }
}

/** A callback came first: the answer still tells what the callback left out. */
function overtaken(payout: Payout, answer: ApplyAnswer): Payout {
  if (answer.kind !== 'accepted') return payout
  return { ...payout, agentpayOrderId: answer.agentpayOrderId, fee: payout.fee ?? answer.fee }
}

/** 0.4 s after the first attempt, doubling up to a minute. */
const backOffMs = (attempt: number): number => Math.min(60_000, 200 * 2 ** Math.min(attempt, 10))

/**
 * What a "not found" does. It counts only after the grace period, and only with a positive control: the
 * same settings have found an order that is known to exist. Enough of them prove absence; for an order
 * whose platform number is known they can only mean that something is wrong, so a person decides.
 */
export function recordAbsence(
  payout: Payout,
  exchange: Exchange,
  positiveControl: boolean,
  table: Timetable,
  now: Instant,
): Decision {
  if (payout.state !== 'unknown' && payout.state !== 'processing') return { nothing: true }
  const counts = positiveControl && now >= (payout.unknownSince ?? 0) + table.graceMs
  const absences = counts ? payout.absences + 1 : payout.absences
  if (absences < table.confirmations) {
    const queries = payout.queries + 1
    const dueAt = Math.min(nextQueryAt(queries, table, now), payout.deadline)
    return change(payout, { ...payout, queries, absences, dueAt }, 'QUERY', exchange)
  }
  const resend = payout.agentpayOrderId === null && table.resendWhenAbsent
  const after = resend
    ? become(payout, 'queued', { reason: 'proved-absent', ready: true })
    : become(payout, 'review', { reason: payout.agentpayOrderId === null ? 'proved-absent' : 'not-found' })
  return change(payout, after, 'QUERY', exchange)
}

/** What a query without an answer does: ask again later. */
export function recordNoAnswer(payout: Payout, exchange: Exchange, table: Timetable, now: Instant): Decision {
  if (payout.state !== 'unknown' && payout.state !== 'processing') return { nothing: true }
  const queries = payout.queries + 1
  const dueAt = Math.min(nextQueryAt(queries, table, now), payout.deadline)
  return change(payout, { ...payout, queries, dueAt }, 'QUERY', exchange)
}

export type TimeDecision = Decision | { ask: true }

/** What time alone does to a payout whose `dueAt` has come. `ask`: the gateway must be asked about it. */
export function whenDue(payout: Payout, table: Timetable, now: Instant): TimeDecision {
  const move = (state: State, fields: Fields) => change(payout, become(payout, state, fields), 'CLOCK', null)
  const expired = now >= payout.deadline
  switch (payout.state) {
    case 'held':
    case 'queued':
      if (expired)
        return payout.attempt === 0
          ? move('cancelled', { reason: 'expired' })
          : move('review', { reason: 'expired' })
      if (payout.state === 'held') return move('queued', { ready: true })
      return change(payout, { ...payout, ready: true, dueAt: payout.deadline }, 'CLOCK', null)
    case 'submitting':
      return move('unknown', { reason: 'lease-ended', unknownSince: now, dueAt: nextQueryAt(0, table, now) })
    case 'unknown':
    case 'processing':
      return expired ? move('review', { reason: 'expired' }) : { ask: true }
    case 'review':
    case 'paid':
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return { nothing: true }
  }
}

/**
 * What a request to cancel does. Only a payout that the gateway cannot have is cancelled; one that waits
 * after an attempt goes to a person. For one that the gateway may have it comes too late: that is kept in
 * its history, and the outcome is found out as ever.
 */
export function cancel(payout: Payout, source: 'COMMAND' | 'OPERATOR', why: string): Decision {
  const waiting = payout.state === 'held' || payout.state === 'queued'
  const after = !waiting
    ? payout
    : payout.attempt === 0
      ? become(payout, 'cancelled', { reason: 'cancelled' })
      : become(payout, 'review', { reason: 'cancel-requested' })
  return change(payout, after, source, { note: why })
}
