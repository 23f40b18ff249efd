import type { Exchange, OrderReport } from './evidence.ts'
import type { Instant } from './instant.ts'
import type { Judgement } from './judgement.ts'
import type { Decision, Payout } from './payout.ts'
import { isEnd } from './states.ts'
import { become, change, nextQueryAt, type Timetable } from './transition.ts'

/** What the gateway's word does to a payout of a restored ledger. `sent`: the ledger had lost that it was sent. */
export type Recovered = { decisions: Decision[]; after: Payout; sent: boolean }

/**
 * An order that the gateway has was sent, whatever the ledger remembers: that attempt counts again, and then the report
 * settles the payout as any other that is doubted, as the ledger may lack later attempts as well: that this order failed is
 * no end. What it does not settle (a failure, another amount) is never sent once more: the gateway is asked about one that
 * failed where it refuses duplicates, and else a person decides.
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
  const attempt = Math.max(1, payout.attempt)
  const attempted = isEnd(payout.state)
    ? { ...payout, attempt, accountId }
    : { ...payout, attempt, accountId, doubted: true, absenceConfirmed: false, absences: 0 }
  const decisions = [change(payout, attempted, 'OPERATOR', sent ? { note } : null)]
  const settled = settle(attempted, report, 'QUERY', table, now)
  decisions.push(settled)
  const after = 'change' in settled ? settled.change.after : attempted
  if (after.state !== 'queued' && after.state !== 'held') return { decisions, after, sent }
  const failed = 'change' in settled && report.status === 'failed'
  const refusal = report.errorMessage ?? 'failed'
  const moved =
    failed && table.resendWhenAbsent
      ? become(after, 'processing', { refusal, dueAt: nextQueryAt(0, table, now) })
      : become(after, 'review', { reason: failed ? 'failed-in-doubt' : 'recovered' })
  decisions.push(change(after, moved, 'OPERATOR', { note }))
  return { decisions, after: moved, sent }
}

/**
 * What becomes of a payout that was sent, as its published story tells, and is not at the gateway. `accountId`: where; null: it
 * may have been at any of several. Where duplicates are not known to be refused, a person decides before one that waits is sent
 * once more; else it goes on, told above what was published, and what is sent now may not be the only attempt. Of one that
 * does not wait it is kept that the gateway said so.
 */
export function recoverAbsent(
  payout: Payout,
  accountId: string | null,
  exchange: Exchange,
  table: Timetable,
): Decision {
  if (isEnd(payout.state)) return { nothing: true }
  if (payout.state !== 'queued' && payout.state !== 'held') return change(payout, payout, 'QUERY', exchange)
  const at = accountId ?? payout.accountId
  const doubted = { ...payout, accountId: at, doubted: true, absenceConfirmed: false }
  if (table.resendWhenAbsent)
    return change(payout, { ...doubted, version: payout.version + 1 }, 'QUERY', exchange)
  return change(payout, become(doubted, 'review', { reason: 'proved-absent' }), 'QUERY', exchange)
}
