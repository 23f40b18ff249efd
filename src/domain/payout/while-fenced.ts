import type { EvidenceSource } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { CANCEL_REQUESTED } from './cancel.ts'
import { askedInVain, askedSoon, isAskedAbout, type QueryPolicy } from './next-query.ts'
import { shown } from './order-shown.ts'
import type { Decision, Payout } from './payout.ts'
import { become } from './transition.ts'

/**
 * Limits a decision about a report of the gateway while the merchant is fenced: the ledger may lack an attempt whose order is
 * alive. So no failure, refusal or absence ends a payout, and an attempt that sent nothing does not lead to a cancellation.
 * payoutd keeps the report and asks the gateway again; the recovery decides, or an operator who vouches that nothing was lost.
 */
export function whileFenced(decision: Decision, queryPolicy: QueryPolicy, now: Instant): Decision {
  if (!('change' in decision)) return decision
  const { change } = decision
  const { before, after, source } = change
  if (after.state === before.state) return decision
  if (after.state === 'failed')
    return {
      ...decision,
      change: { ...change, after: failureKept(before, after, source, queryPolicy, now) },
    }
  if (after.state !== 'cancelled') return decision
  const { accountId, deadline } = after
  const waits = { reason: CANCEL_REQUESTED, accountId, dueAt: deadline }
  return { ...decision, change: { ...change, after: become(before, 'queued', waits) } }
}

function failureKept(
  payout: Payout,
  failed: Payout,
  source: EvidenceSource,
  queryPolicy: QueryPolicy,
  now: Instant,
): Payout {
  if (!isAskedAbout(payout)) return payout
  const asked =
    source === 'QUERY' ? askedInVain(payout, queryPolicy, now) : askedSoon(payout, queryPolicy, now)
  const kept = { ...asked, refusal: failed.reason }
  // The gateway's own report shows an order.
  return failed.unreported ? kept : shown(kept)
}
