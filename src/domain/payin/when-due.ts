import type { Instant } from '../instant.ts'
import { nextQueryAt, type Timetable } from '../payout/transition.ts'
import type { Payin, PayinDecision } from './payin.ts'
import { become, change } from './transition.ts'

/** What time alone does to a payin whose `dueAt` has come. `ask`: the gateway must be asked about it. */
export function whenDue(payin: Payin, table: Timetable, now: Instant): PayinDecision | { ask: true } {
  if (payin.state !== 'creating') return { ask: true }
  const fields = { reason: 'lease-ended', unknownSince: now, dueAt: nextQueryAt(0, table, now) }
  return change(payin, become(payin, 'unknown', fields), 'CLOCK', null)
}
