import {
  fencedMerchants,
  type Ledger,
  lockPayouts,
  type PayoutKey,
  storeDecisions,
} from '../ledger/ledger.ts'
import { cancel } from '../payout/cancel.ts'
import type { Payout } from '../payout/payout.ts'
import type { State } from '../payout/states.ts'
import type { Database } from '../platform/postgres.ts'

/** Who asks for it, and why: kept in the payout's history. */
export type CancelRequest = PayoutKey & { by: string; reason: string }

/**
 * What asking to cancel comes to. `review`: an attempt exists that the gateway may hold, so a person decides. `held`:
 * its merchant is fenced, and the recovery cancels it unless the gateway has it. `too-late`: the payout stays what it is. `unknown`: nobody knows the payout.
 */
export type CancelOutcome =
  | { kind: 'cancelled' | 'review' | 'held'; from: State }
  | { kind: 'too-late'; state: State }
  | { kind: 'unknown' }

/** Decides and stores: state, history and messages together. */
export function cancelPayout(request: CancelRequest, ledger: Ledger): Promise<CancelOutcome> {
  return ledger.db.transaction('cancel payout', async (tx) => {
    const [payout] = await lockPayouts(tx, [request])
    if (!payout) return { kind: 'unknown' }
    const { decision, outcome } = decide(payout, request, await fencedMerchants(tx))
    await storeDecisions(tx, ledger, [decision])
    return outcome
  })
}

/** What `cancelPayout` would do now. Stores nothing. */
export function previewCancel(request: CancelRequest, db: Database): Promise<CancelOutcome> {
  return db.transaction('preview of a cancel', async (tx) => {
    const [payout] = await lockPayouts(tx, [request])
    return payout ? decide(payout, request, await fencedMerchants(tx)).outcome : { kind: 'unknown' }
  })
}

function decide(payout: Payout, { by, reason }: CancelRequest, fenced: ReadonlySet<string>) {
  const decision = cancel(payout, 'OPERATOR', `${by}: ${reason}`, { fenced: fenced.has(payout.merchantId) })
  return { decision, outcome: outcomeOf(payout, 'change' in decision ? decision.change.after : payout) }
}

function outcomeOf(before: Payout, after: Payout): CancelOutcome {
  if (after.version === before.version) return { kind: 'too-late', state: before.state }
  const kind = after.state === 'cancelled' || after.state === 'held' ? after.state : 'review'
  return { kind, from: before.state }
}
