import type { Exchange, OrderReport } from './evidence.ts'
import type { Instant } from './instant.ts'
import type { Judgement } from './judgement.ts'
import type { Decision, Payout } from './payout.ts'
import { become, change, type Timetable } from './transition.ts'

/** What the gateway's word does to a payout of a restored ledger. `sent`: the ledger had lost that it was sent. */
export type Recovered = { decisions: Decision[]; after: Payout; sent: boolean }

/**
 * An order that the gateway has was sent, whatever the ledger remembers: that attempt counts again, and then the report
 * settles the payout as any other. What it does not settle (another amount, say) is never sent once more: a person
 * decides.
 */
export function recover(
  payout: Payout,
  { report, accountId }: { report: OrderReport; accountId: string },
  note: string,
  { settle }: Pick<Judgement, 'settle'>,
  table: Timetable,
  now: Instant,
): Recovered {
  const sent = payout.attempt === 0
  const attempted = { ...payout, attempt: Math.max(1, payout.attempt), accountId }
  const decisions = sent ? [change(payout, attempted, 'OPERATOR', { note })] : []
  const settled = settle(attempted, report, 'QUERY', table, now)
  decisions.push(settled)
  const after = 'change' in settled ? settled.change.after : attempted
  if (after.state !== 'queued' && after.state !== 'held') return { decisions, after, sent }
  const reviewed = become(after, 'review', { reason: 'recovered' })
  decisions.push(change(after, reviewed, 'OPERATOR', { note }))
  return { decisions, after: reviewed, sent }
}

/**
 * What becomes of a payout that was sent, as its published story tells, and is not at the gateway. Where duplicates are not
 * known to be refused, a person decides before one that waits is sent once more; else it goes on, and what is sent
 * now may not be the only attempt.
 */
export function recoverAbsent(
  payout: Payout,
  accountId: string,
  exchange: Exchange,
  table: Timetable,
): Decision {
  if (payout.state !== 'queued' && payout.state !== 'held') return { nothing: true }
  const doubted = { ...payout, accountId, doubted: true }
  if (table.resendWhenAbsent) return change(payout, doubted, 'QUERY', null)
  return change(payout, become(doubted, 'review', { reason: 'proved-absent' }), 'QUERY', exchange)
}
