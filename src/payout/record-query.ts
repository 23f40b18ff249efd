import type { Exchange } from './evidence.ts'
import type { Instant } from './instant.ts'
import type { Decision, Payout } from './payout.ts'
import { become, change, nextQueryAt, type Timetable } from './transition.ts'

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
