import type { ApplyAnswer } from './answers.ts'
import type { Exchange } from './evidence.ts'
import type { Instant } from './instant.ts'
import { neverSent } from './never-sent.ts'
import type { Decision, Payout } from './payout.ts'
import { anomaly, become, change, nextQueryAt, paidNothing, REFUSED, type Timetable } from './transition.ts'

/**
 * What the answer to an apply call does to the payout it was made for. An answer counts only for the
 * payout's current attempt while that is open (submitting, or unknown since); otherwise it is evidence
 * that is kept, and it moves nothing. An answer to an attempt that the ledger does not know of shows that the ledger was
 * set back (see neverSent).
 */
export function recordApply(
  payout: Payout,
  attempt: number,
  answer: ApplyAnswer,
  table: Timetable,
  now: Instant,
): Decision {
  const { exchange } = answer
  if (attempt > payout.attempt) {
    const detail = `attempt ${attempt} was answered (${answer.kind}), and ${payout.attempt} attempts are known`
    return neverSent(payout, 'APPLY', detail, exchange)
  }
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
    case 'refused': {
      const reason = answer.message || answer.code
      if (payout.doubted) return refusedInDoubt(payout, reason, exchange, table, now)
      return change(payout, become(payout, 'failed', { reason }), 'APPLY', exchange)
    }
    case 'not-sent':
    case 'retry-later': {
      const reason = answer.kind === 'not-sent' ? answer.reason : answer.code
      const dueAt = now + backOffMs(payout.attempt)
      // This attempt did not happen; an earlier one may have.
      const accountId = payout.doubted ? payout.accountId : null
      return change(payout, become(payout, 'queued', { reason, dueAt, accountId }), 'APPLY', exchange)
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

/**
 * A refusal ends the attempt that it answers, and says nothing of an earlier one that may be alive: the gateway is asked
 * before anybody is told that the payout failed.
 */
function refusedInDoubt(
  payout: Payout,
  why: string,
  exchange: Exchange,
  table: Timetable,
  now: Instant,
): Decision {
  const fields = { reason: `${REFUSED}${why}`, unknownSince: now, dueAt: nextQueryAt(0, table, now) }
  const after =
    payout.state === 'unknown' ? { ...payout, ...fields, absences: 0 } : become(payout, 'unknown', fields)
  return change(payout, after, 'APPLY', exchange)
}

/** A callback came first: the answer still tells what the callback left out. */
function overtaken(payout: Payout, answer: ApplyAnswer): Payout {
  if (answer.kind !== 'accepted') return payout
  const fee = paidNothing(payout.state) ? null : (payout.fee ?? answer.fee)
  return { ...payout, agentpayOrderId: answer.agentpayOrderId, fee }
}

/** 0.4 s after the first attempt, doubling up to a minute. */
const backOffMs = (attempt: number): number => Math.min(60_000, 200 * 2 ** attempt)
