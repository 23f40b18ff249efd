import { type Ledger, lockPayouts, type PayoutKey, storeDecisions } from '../ledger/ledger.ts'
import type { Payout } from '../payout/payout.ts'
import { type Decided, type Refusal, type Resolution, resolve } from '../payout/resolve.ts'
import type { Database, Transaction } from '../platform/postgres.ts'

export type ResolveRequest = PayoutKey & Decided & { resolution: Resolution }

/** What a person's decision comes to. `unknown`: nobody knows the payout. */
export type ResolveOutcome =
  | { kind: 'resolved'; payout: Payout }
  | { kind: 'refused'; refusal: Refusal }
  | { kind: 'unknown' }

/** Decides and stores: state, history and messages together. */
export function resolvePayout(request: ResolveRequest, ledger: Ledger): Promise<ResolveOutcome> {
  return ledger.db.transaction('resolve payout', async (tx): Promise<ResolveOutcome> => {
    const { decision, outcome } = await decide(tx, request)
    if (decision) await storeDecisions(tx, ledger, [decision])
    return outcome
  })
}

/** What `resolvePayout` would do now. Stores nothing. */
export function previewResolve(request: ResolveRequest, db: Database): Promise<ResolveOutcome> {
  return db.transaction('preview of a resolution', async (tx) => (await decide(tx, request)).outcome)
}

async function decide(tx: Transaction, request: ResolveRequest) {
  const [payout] = await lockPayouts(tx, [request])
  if (!payout) return { decision: null, outcome: { kind: 'unknown' } as const }
  const decision = resolve(payout, request.resolution, request, tx.now)
  return 'refused' in decision
    ? { decision: null, outcome: { kind: 'refused', refusal: decision.refused } as const }
    : { decision, outcome: { kind: 'resolved', payout: decision.change.after } as const }
}
