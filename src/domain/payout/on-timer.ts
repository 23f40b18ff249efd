import { awaitsRelease } from '../commands/holds.ts'
import type { Instant } from '../instant.ts'
import { unknownAfterCrash } from './after-crash.ts'
import { stop } from './cancel.ts'
import type { QueryPolicy } from './next-query.ts'
import type { Decision, Payout } from './payout.ts'
import type { State } from './states.ts'
import { become, change, type PayoutFields, wasNeverSent } from './transition.ts'

export type TimeDecision = Decision | { ask: true }

/** What time alone does to a payout whose `dueAt` has come. `ask`: payoutd must ask the gateway about it. */
export function onTimer(payout: Payout, queryPolicy: QueryPolicy, now: Instant): TimeDecision {
  const move = (state: State, fields: PayoutFields) =>
    change(payout, become(payout, state, fields), 'CLOCK', null)
  const expired = now >= payout.deadline
  switch (payout.state) {
    case 'held':
    case 'queued':
      if (expired)
        return wasNeverSent(payout)
          ? move('cancelled', { reason: 'expired' })
          : move('review', { reason: 'expired' })
      if (payout.cancelRequest !== null) return change(payout, stop(payout), 'CLOCK', null)
      if (awaitsRelease(payout)) return change(payout, { ...payout, dueAt: payout.deadline }, 'CLOCK', null)
      if (payout.state === 'held') return move('queued', { ready: true })
      return change(payout, { ...payout, ready: true, dueAt: payout.deadline }, 'CLOCK', null)
    case 'submitting':
      return change(payout, unknownAfterCrash(payout, queryPolicy, now), 'CLOCK', null)
    case 'unknown':
    case 'processing':
      return expired ? move('review', { reason: 'expired', refusal: payout.refusal }) : { ask: true }
    case 'review':
    case 'paid':
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return { nothing: true }
  }
}
