import { fencedMerchants, type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import { cancel } from '../payout/cancel.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import type { State } from '../payout/states.ts'
import type { Database, Transaction } from '../platform/postgres.ts'
import { inTurns } from './in-turns.ts'

/** Who asks for it, and why: kept in the payouts' history. */
export type CancelRequest = { merchantId: string; payoutIds: readonly string[]; by: string; reason: string }

/**
 * What asking to cancel comes to. `review`: an attempt exists that the gateway may hold, so a person decides. `held`:
 * its merchant is fenced, and the recovery cancels it unless the gateway has it. `too-late`: the payout stays what it is. `unknown`: nobody knows the payout.
 */
export type CancelOutcome = { payoutId: string } & (
  | { kind: 'cancelled' | 'review' | 'held'; from: State }
  | { kind: 'too-late'; state: State }
  | { kind: 'unknown' }
)

/** Decides and stores: state, history and messages together. An outcome for each payout, in their order. */
export const cancelPayouts = (request: CancelRequest, ledger: Ledger): Promise<CancelOutcome[]> =>
  inTurns(request.payoutIds, (payoutIds) =>
    ledger.db.transaction('cancel payouts', async (tx) => {
      const decided = await decide(tx, { ...request, payoutIds })
      await storeDecisions(
        tx,
        ledger,
        decided.map(({ decision }) => decision),
      )
      return decided.map(({ outcome }) => outcome)
    }),
  )

/** What `cancelPayouts` would do now. Stores nothing. */
export const previewCancel = (request: CancelRequest, db: Database): Promise<CancelOutcome[]> =>
  inTurns(request.payoutIds, (payoutIds) =>
    db.transaction('preview of a cancel', async (tx) =>
      (await decide(tx, { ...request, payoutIds })).map(({ outcome }) => outcome),
    ),
  )

async function decide(
  tx: Transaction,
  { merchantId, payoutIds, by, reason }: CancelRequest,
): Promise<{ decision: Decision; outcome: CancelOutcome }[]> {
  const locked = await lockPayouts(
    tx,
    payoutIds.map((payoutId) => ({ merchantId, payoutId })),
  )
  const payouts = new Map(locked.map((payout) => [payout.payoutId, payout]))
  const fenced = (await fencedMerchants(tx)).has(merchantId)
  return payoutIds.map((payoutId) => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } }
    const decision = cancel(payout, 'OPERATOR', `${by}: ${reason}`, { fenced })
    return { decision, outcome: outcomeOf(payout, 'change' in decision ? decision.change.after : payout) }
  })
}

function outcomeOf(before: Payout, after: Payout): CancelOutcome {
  const { payoutId, state } = before
  if (after.version === before.version) return { payoutId, kind: 'too-late', state }
  const kind = after.state === 'cancelled' || after.state === 'held' ? after.state : 'review'
  return { payoutId, kind, from: state }
}
