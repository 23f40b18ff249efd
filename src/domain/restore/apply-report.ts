import type { Decisions } from '../decisions.ts'
import type { Exchange, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { isEnd } from '../payout/states.ts'
import { become, cannotBeThere, change } from '../payout/transition.ts'

/** What the gateway's word does to a payout of a restored ledger. `sent`: the ledger had lost that it was sent. */
export type RestoredPayout = { decisions: Decision[]; after: Payout; sent: boolean }

/**
 * An order that the gateway has was sent, whatever the ledger remembers: that attempt counts again, and then the report
 * settles the payout as any other that is doubted, as the ledger may lack later attempts as well: that this order failed is
 * no end. What it does not settle (a failure, another amount) is never sent once more: the gateway is asked about one that
 * failed where it refuses duplicates (`table`), and else a person decides, also about one that is under way.
 */
export function applyReportAfterRestore(
  payout: Payout,
  { report, accountId }: { report: OrderReport; accountId: string },
  note: string,
  { applyEvidence: settle }: Pick<Decisions, 'applyEvidence'>,
  queryPolicy: QueryPolicy,
  now: Instant,
): RestoredPayout {
  const sent = cannotBeThere(payout)
  const attempt = payout.attempt + (sent ? 1 : 0)
  const attempted = isEnd(payout.state)
    ? { ...payout, attempt, accountId }
    : { ...payout, attempt, accountId, doubted: true, absenceConfirmed: false, notFoundCount: 0 }
  const decisions = [change(payout, attempted, 'OPERATOR', sent ? { note } : null)]
  const settled = settle(attempted, report, 'QUERY', queryPolicy, now)
  decisions.push(settled)
  const after = 'change' in settled ? settled.change.after : attempted
  const failed = 'change' in settled && !('anomaly' in settled) && report.status === 'failed'
  const isLeft = isEnd(after.state) || after.state === 'review'
  if (isLeft || (!waits(after) && !(failed && !queryPolicy.resendWhenAbsent)))
    return { decisions, after, sent }
  const refusal = report.errorMessage ?? 'failed'
  const moved =
    failed && queryPolicy.resendWhenAbsent
      ? become(after, 'processing', { refusal, dueAt: nextQueryAt(0, queryPolicy, now) })
      : become(after, 'review', { reason: failed ? 'failed-in-doubt' : 'recovered' })
  decisions.push(change(after, moved, 'OPERATOR', { note }))
  return { decisions, after: moved, sent }
}

/**
 * What becomes of a payout that was sent, as its published story tells, and is not at the gateway. `accountId`: where; null: it
 * may have been at any of several, of which none promises anything for another. Where duplicates are known to be refused, what waits goes on, told above what was
 * published, and what is sent now may not be the only attempt; what is under way is asked about as ever. Else a person
 * decides, and in review it is kept that the gateway said so.
 */
export function applyAbsenceAfterRestore(
  payout: Payout,
  accountId: string | null,
  exchange: Exchange,
  queryPolicy: QueryPolicy,
): Decision {
  if (isEnd(payout.state)) return { nothing: true }
  if (payout.state === 'review')
    return change(payout, accountId === null ? { ...payout, accountId } : payout, 'QUERY', exchange)
  const doubted = { ...payout, accountId, doubted: true, absenceConfirmed: false }
  if (accountId === null || !queryPolicy.resendWhenAbsent)
    return change(payout, become(doubted, 'review', { reason: 'proved-absent' }), 'QUERY', exchange)
  const version = waits(payout) ? payout.version + 1 : payout.version
  return change(payout, { ...doubted, version }, 'QUERY', exchange)
}

const waits = ({ state }: Payout): boolean => state === 'queued' || state === 'held'
