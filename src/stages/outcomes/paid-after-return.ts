import { PAID_AFTER_RETURN } from '../../domain/anomaly-details.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { withWhatItSays } from '../../domain/payout/apply-evidence.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { anomaly } from '../../domain/payout/transition.ts'
import { keyOf } from '../../ledger/ledger.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { returnedOf } from './sql/returned.ts'

type ReportedPayout = { payout: Payout | undefined; report: OrderReport | null }

/** Those of these locked payouts whose money came back, as a person has confirmed, and which the gateway reports as paid. */
export async function returnedAmong(
  tx: Transaction,
  reported: readonly ReportedPayout[],
): Promise<ReadonlySet<string>> {
  const payouts = reported.flatMap(({ payout, report }) =>
    payout?.state === 'paid' && report?.status === 'success' ? [payout] : [],
  )
  return new Set(payouts.length === 0 ? [] : (await tx.run(returnedOf, { payouts })).map(keyOf))
}

/** The decision about such a report, with an anomaly: the transfer may not have come back, or was made anew. */
export function toldAfterReturn(
  decision: Decision,
  { payout, report }: ReportedPayout,
  source: 'CALLBACK' | 'QUERY',
  returned: ReadonlySet<string>,
): Decision {
  if (!payout || report?.status !== 'success' || 'anomaly' in decision || !returned.has(keyOf(payout)))
    return decision
  const detail = withWhatItSays(PAID_AFTER_RETURN, report)
  const told = anomaly(payout, source, 'contradiction', detail, report.exchange)
  return 'change' in decision ? { ...told, change: { ...decision.change, exchange: null } } : told
}
