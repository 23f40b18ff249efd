import { saidAgainst } from '../domain/anomaly-details.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import { scrub } from '../domain/mask.ts'
import type { Payout } from '../domain/payout/payout.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import type { State } from '../domain/payout/states.ts'
import { recordAct } from '../ledger/acts.ts'
import { type Ledger, lockPayouts, storeOutbox } from '../ledger/ledger.ts'
import { tellLostResult } from '../ledger/published-messages.ts'
import { reversalMessage } from '../messages/messages.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { reportedContradictions } from '../queries/sql/payouts/contradictions.ts'
import { reversalOf, type StoredReversal } from '../queries/sql/payouts/reversal.ts'
import { setAcknowledged } from './sql/acknowledge.ts'
import { keepReversal } from './sql/reversal.ts'
import { countEvidence } from './store-decisions.ts'

/**
 * `anomalyId`: the anomaly in which the gateway reports that the transfer came back; null: the only one there is. `shown`: how
 * much evidence the operator was shown; null: nobody was asked.
 */
export type ReverseRequest = PayoutKey & Decided & { anomalyId: string | null; shown: number | null }

/**
 * The result of confirming a returned transfer. `no-word`: the gateway did not report that it failed after all, or not in the
 * anomaly that was named. `several`: it reported so more than once, so the operator must name the anomaly. `moved`: more was
 * reported since it was shown.
 */
export type ReverseOutcome =
  | { kind: 'reversed'; anomalyId: string; payout: Payout; evidenceCount: number }
  | ({ kind: 'already' } & StoredReversal)
  | { kind: 'not-paid'; state: State }
  | { kind: 'no-word'; anomalyIds: string[] }
  | { kind: 'several'; anomalyIds: string[] }
  | { kind: 'moved' }
  | { kind: 'unknown' }

/**
 * Records a paid transfer as returned, and publishes that for the readers of results, once per payout. The payout stays paid, and
 * its published result stands; if a recovery still had to publish the result, the result goes first. It also acknowledges the
 * anomaly, unless somebody did before.
 */
export function reversePayout(request: ReverseRequest, ledger: Ledger): Promise<ReverseOutcome> {
  return ledger.db.transaction('reverse payout', async (tx) => {
    const outcome = await decide(tx, request)
    if (outcome.kind !== 'reversed') return outcome
    const { anomalyId, payout } = outcome
    const { merchantId, payoutId, amount } = payout
    const { by } = request
    const reason = scrub(request.reason)
    const [kept] = await tx.run(keepReversal, { merchantId, payoutId, anomalyId, amount, by, reason })
    const acknowledgement = scrub(`confirmed as a returned transfer: ${reason}`)
    await tx.run(setAcknowledged, { merchantId, anomalyIds: [anomalyId], by, reason: acknowledgement })
    const reversal = { payout, anomalyId, reason, paidAt: kept?.paidAt ?? null, at: tx.now }
    const message = reversalMessage(reversal, ledger.topics, ledger.encode)
    await tellLostResult(tx, payout, [], ledger)
    await storeOutbox(tx, [message])
    const after = { reversed: true, amount: amount.toString(), anomalyId }
    const done = {
      command: 'payout reverse',
      merchantId,
      subjects: [payoutId],
      before: { reversed: false },
      after,
    }
    await recordAct(tx, { by, reason, ...done })
    return outcome
  })
}

/** What `reversePayout` would do now. Stores nothing. */
export const previewReverse = (request: ReverseRequest, db: Database): Promise<ReverseOutcome> =>
  db.transaction('preview of a reversal', (tx) => decide(tx, request))

async function decide(tx: Transaction, request: ReverseRequest): Promise<ReverseOutcome> {
  const [payout] = await lockPayouts(tx, [request])
  if (!payout) return { kind: 'unknown' }
  const { merchantId, payoutId, state } = payout
  const [before] = await tx.run(reversalOf, { merchantId, payoutId })
  if (before) return { kind: 'already', ...before }
  if (state !== 'paid') return { kind: 'not-paid', state }
  const contradictions = await tx.run(reportedContradictions, {
    merchantId,
    payoutId,
    against: saidAgainst(state),
  })
  const anomalyIds = contradictions.map(({ anomalyId }) => anomalyId)
  const wanted = request.anomalyId?.toLowerCase() ?? null
  if (wanted === null && anomalyIds.length > 1) return { kind: 'several', anomalyIds }
  const anomalyId = wanted === null ? anomalyIds[0] : anomalyIds.find((id) => id === wanted)
  if (anomalyId === undefined) return { kind: 'no-word', anomalyIds }
  const evidenceCount = await countEvidence(tx, payout)
  if (request.shown !== null && request.shown !== evidenceCount) return { kind: 'moved' }
  return { kind: 'reversed', anomalyId, payout, evidenceCount }
}
