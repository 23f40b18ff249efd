import type { Decisions } from '../decisions.ts'
import type { Exchange, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { isEnd } from '../payout/states.ts'
import { become, cannotBeThere, change } from '../payout/transition.ts'

/** What a report of the gateway does to a payout of a restored ledger. `sent`: the ledger had lost that it was sent. */
export type RestoredPayout = { decisions: Decision[]; after: Payout; sent: boolean }

/**
 * If the gateway has an order, the payout was sent, whatever the ledger knows: that attempt counts again. Then the report is
 * applied as to any doubted payout, because the ledger may lack later attempts too, so the failure of this order is no end.
 * payoutd never sends again what the report leaves open (a failure, another amount). If the gateway refuses duplicates
 * (`queryPolicy`), payoutd asks about a failed order; else a person decides, even while it is under way.
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
    : {
        ...{ ...payout, attempt, accountId, doubted: true, absenceConfirmed: false, notFoundCount: 0 },
        orderBesides: payout.orderBesides || (payout.accountId !== null && payout.accountId !== accountId),
      }
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
 * What happens to a payout that was published as sent, and that the gateway does not have. `accountId`: where it was sent;
 * null: to any of several accounts, none of which promises anything for another. If the gateway is known to refuse
 * duplicates, a waiting payout goes on under a version above the published ones, and its next attempt may not be the only
 * one; payoutd asks about one under way as usual. Else a person decides. In review, payoutd only keeps the gateway's answer.
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
