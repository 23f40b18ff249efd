import type { Decisions } from '../decisions.ts'
import type { Exchange, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { nextQueryAt, type QueryPolicy } from '../payout/next-query.ts'
import { withOrderBesides } from '../payout/order-shown.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { reportedElsewhere } from '../payout/reported-elsewhere.ts'
import { DOUBT, isOfPayment } from '../payout/several-orders.ts'
import { isEnd } from '../payout/states.ts'
import { become, cannotBeThere, change } from '../payout/transition.ts'

/** What a report of the gateway does to a payout of a restored ledger. `sent`: the ledger had lost that it was sent. */
export type RestoredPayout = { decisions: Decision[]; after: Payout; sent: boolean }

/** An order that one of the accounts has. */
export type FoundAt = { accountId: string; report: OrderReport }

/**
 * What the orders do to a payout that the accounts reported to a recovery: `found`, and then `others`, at other accounts.
 * `accountId`: the only account that may have it; null: any of several.
 */
export function applyReportsAfterRecovery(
  payout: Payout,
  { found, others }: { found: FoundAt; others: readonly FoundAt[] },
  { accountId: sole, queryPolicy }: { accountId: string | null; queryPolicy: QueryPolicy },
  note: string,
  decisions: Pick<Decisions, 'applyEvidence'>,
  now: Instant,
): RestoredPayout {
  const isElsewhere =
    isEnd(payout.state) &&
    payout.accountId !== found.accountId &&
    (payout.accountId !== null || (sole === null && !isItsPayment(payout, found.report)))
  const first = isElsewhere
    ? { decisions: [], after: payout, sent: false }
    : applyReport(payout, { ...found, isSole: sole !== null }, note, decisions, queryPolicy, now)
  const all = [...first.decisions]
  let { after } = first
  for (const { accountId, report } of [...(isElsewhere ? [found] : []), ...others]) {
    const at = { from: [accountId], accountId }
    const decision = reportedElsewhere(after, report, 'QUERY', at, queryPolicy, now)
    if ('change' in decision) after = decision.change.after
    all.push(decision)
  }
  return { decisions: all, after, sent: first.sent }
}

const isItsPayment = (payout: Payout, report: OrderReport): boolean =>
  report.status === 'success' && (payout.state !== 'paid' || isOfPayment(payout, report))

/**
 * If the gateway has an order, the payout was sent, whatever the ledger knows: that attempt counts again. Then the report is
 * applied as to any doubted payout, because the ledger may lack later attempts too, so the failure of this order is no end.
 * If those may have gone to another account, nothing but a payment or a person ends it. payoutd never sends again what the report
 * leaves open (a failure, another amount). If the gateway refuses duplicates (`queryPolicy`), payoutd asks about a failed order;
 * else a person decides, even while it is under way.
 */
function applyReport(
  payout: Payout,
  { report, accountId, isSole }: FoundAt & { isSole: boolean },
  note: string,
  { applyEvidence: settle }: Pick<Decisions, 'applyEvidence'>,
  queryPolicy: QueryPolicy,
  now: Instant,
): RestoredPayout {
  const sent = cannotBeThere(payout)
  const attempt = payout.attempt + (sent ? 1 : 0)
  const there = { ...payout, attempt, accountId }
  const isMoved = payout.accountId !== null && payout.accountId !== accountId
  const doubted = { ...there, ...DOUBT, notFoundCount: 0 }
  const open = isMoved || !isSole ? withOrderBesides(doubted) : doubted
  const attempted = isEnd(payout.state) ? there : open
  const decisions = [change(payout, attempted, 'OPERATOR', sent ? { note } : null)]
  const settled = settle(attempted, report, 'QUERY', queryPolicy, now)
  decisions.push(settled)
  const after = 'change' in settled ? settled.change.after : attempted
  const failed = 'change' in settled && !('anomaly' in settled) && report.status === 'failed'
  const isLeft = isEnd(after.state) || after.state === 'review'
  if (isLeft || (!waits(after) && !(failed && !queryPolicy.duplicatesRefused)))
    return { decisions, after, sent }
  const refusal = report.errorMessage ?? 'failed'
  const moved =
    failed && queryPolicy.duplicatesRefused
      ? become(after, 'processing', { refusal, dueAt: nextQueryAt(0, queryPolicy, now) })
      : become(after, 'review', { reason: failed ? 'failed-in-doubt' : 'recovered' })
  decisions.push(change(after, moved, 'OPERATOR', { note }))
  return { decisions, after: moved, sent }
}

/**
 * What happens to a payout that was published as sent, or is in review, and that the gateway does not have. `lost`: where an attempt
 * that the ledger lost was made (null: at any of several accounts, none of which promises anything for another). If the gateway is
 * known to refuse duplicates, a waiting payout goes on under a version above the published ones, and its next attempt may not be the
 * only one; payoutd asks about one under way as usual. Else a person decides. In review, nothing else happens.
 */
export function applyAbsenceAfterRecovery(
  payout: Payout,
  lost: { accountId: string | null } | null,
  exchange: Exchange,
  queryPolicy: QueryPolicy,
): Decision {
  if (isEnd(payout.state)) return { nothing: true }
  const doubted = { ...payout, ...lost, ...DOUBT }
  if (payout.state === 'review') return change(payout, lost ? doubted : payout, 'QUERY', exchange)
  if (doubted.accountId === null || !queryPolicy.duplicatesRefused)
    return change(payout, become(doubted, 'review', { reason: 'proved-absent' }), 'QUERY', exchange)
  const version = waits(payout) ? payout.version + 1 : payout.version
  return change(payout, { ...doubted, version }, 'QUERY', exchange)
}

const waits = ({ state }: Payout): boolean => state === 'queued' || state === 'held'
