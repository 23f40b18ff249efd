import type { EvidenceSource, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { isSameUtr } from '../utr.ts'
import { ANOTHER_ORDER, applyEvidence, mayShowOrder, withWhatItSays } from './apply-evidence.ts'
import { neverSent } from './ledger-lacks-attempt.ts'
import { inconclusive, type QueryPolicy } from './next-query.ts'
import { shown, withOrderBesides } from './order-shown.ts'
import type { Decision, Payout } from './payout.ts'
import { isEnd } from './states.ts'
import { anomaly } from './transition.ts'

/** The kind of the anomaly. */
export const OTHER_ACCOUNT = 'other-account'

/** The kinds of anomalies about an order besides that of the latest attempt. */
export const BESIDES = [ANOTHER_ORDER, OTHER_ACCOUNT]

/** `from`: the accounts it may come from. `accountId`: the one of them at which an attempt was, or may have been, made; null: none. */
type Elsewhere = { from: readonly string[]; accountId: string | null }

/**
 * What a report does that comes from another gateway account than the one where an attempt may be alive. That account has an order
 * of the payout, besides: it may have paid it, and what it says proves nothing about the order of the latest attempt. If no attempt
 * was made there, the ledger has lost one, unless the report names the known order: then only the key is another one. It is always
 * an anomaly.
 */
export function reportedElsewhere(
  payout: Payout,
  report: OrderReport,
  source: EvidenceSource & ('CALLBACK' | 'QUERY'),
  { from, accountId }: Elsewhere,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const where = payout.accountId === null ? 'not sent there' : `sent to account ${payout.accountId}`
  const what = `gateway account ${from.join(', ')} reports an order that was ${where}`
  const detail = withWhatItSays(what, report)
  const decision = anomaly(payout, source, OTHER_ACCOUNT, detail, report.exchange)
  if (!mayShowOrder(report)) return decision
  if (accountId === null && namesKnownOrder(payout, report)) return decision
  if (accountId === null) return neverSent(payout, source, detail, report.exchange, 'order-besides')
  if (isEnd(payout.state)) return decision
  const applied = applyEvidence(withOrderBesides(payout), report, source, inconclusive(queryPolicy), now)
  const { after = withOrderBesides(payout), exchange = null } = 'change' in applied ? applied.change : {}
  const { agentpayOrderId, fee, utr } = payout
  const reported =
    after.state === 'paid' ? { ...after, accountId } : { ...shown(after), agentpayOrderId, fee, utr }
  return { ...decision, change: { before: payout, after: reported, source, exchange } }
}

const namesKnownOrder = (known: Payout, { agentpayOrderId, utr }: OrderReport): boolean =>
  (agentpayOrderId !== null && agentpayOrderId === known.agentpayOrderId) ||
  (utr !== null && known.utr !== null && isSameUtr(utr, known.utr))
