import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { become, change } from './transition.ts'

/** What time alone does to a payin whose `dueAt` has come. `ask`: payoutd must ask the gateway about it. */
export function onTimer(payin: Payin, queryPolicy: QueryPolicy, now: Instant): PayinDecision | { ask: true } {
  if (payin.state !== 'creating') return { ask: true }
  const fields = { reason: 'lease-ended', unknownSince: now, dueAt: nextQueryAt(0, queryPolicy, now) }
  return change(payin, become(payin, 'unknown', now, fields), 'CLOCK', null)
}
