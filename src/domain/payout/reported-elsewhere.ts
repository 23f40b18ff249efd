import type { EvidenceSource, OrderReport } from '../evidence.ts'
import type { Instant } from '../instant.ts'
import { applyEvidence, mayShowOrder, withWhatItSays } from './apply-evidence.ts'
import { neverSent } from './ledger-lacks-attempt.ts'
import { inconclusive, type QueryPolicy } from './next-query.ts'
import { shownBesides } from './order-shown.ts'
import type { Decision, Payout } from './payout.ts'
import { anomaly } from './transition.ts'

/** `from`: the accounts it may come from. `mayHaveAttempt`: whether, as far as the ledger knows, an attempt was made at one of them. */
type Elsewhere = { from: readonly string[]; mayHaveAttempt: boolean }

/**
 * What a report does that comes from another gateway account than the one where an attempt may be alive. That account has an order
 * of the payout, besides: it may have paid it, and what it says proves nothing about the order of the latest attempt. If no attempt
 * was made there, the ledger has lost one. It is always an anomaly.
 */
export function reportedElsewhere(
  payout: Payout,
  report: OrderReport,
  source: EvidenceSource & ('CALLBACK' | 'QUERY'),
  { from, mayHaveAttempt }: Elsewhere,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  const what = `gateway account ${from.join(', ')} reports an order that was sent to account ${payout.accountId}`
  const detail = withWhatItSays(what, report)
  const told = anomaly(payout, source, 'other-account', detail, report.exchange)
  if (!mayShowOrder(report)) return told
  if (!mayHaveAttempt) return neverSent(payout, source, detail, report.exchange)
  const besides = shownBesides(payout)
  const decision = applyEvidence(besides, report, source, inconclusive(queryPolicy), now)
  const change = 'change' in decision ? decision.change : { after: besides, source, exchange: null }
  return { ...told, ...decision, change: { ...change, before: payout } }
}
