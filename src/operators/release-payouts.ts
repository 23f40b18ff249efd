import { isDeepStrictEqual } from 'node:util'
import { awaitsRelease, release } from '../domain/commands/holds.ts'
import type { Instant } from '../domain/instant.ts'
import { words } from '../domain/mask.ts'
import type { Paise } from '../domain/money.ts'
import type { Decision, Payout } from '../domain/payout/payout.ts'
import type { State } from '../domain/payout/states.ts'
import { wasNeverSent } from '../domain/payout/transition.ts'
import { fencedMerchants, type Ledger } from '../ledger/ledger.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { evidenceCountsOfPayouts } from '../queries/sql/evidence-counts.ts'
import { holdsOf, releasesOf, type StoredHold } from '../queries/sql/holds.ts'
import { inBatches } from './in-batches.ts'
import {
  type DecisionRequest,
  lockById,
  outcomesOf,
  type PayoutsDecided,
  storeDecided,
} from './store-decisions.ts'

/** When a person released a payout; `note`: who, and why. */
type Release = { at: Instant; note: string }

/**
 * What asking for a payout's release comes to. `scheduled`: it waits on until `paysAt`. `to-be-cancelled`:
 * somebody asked for that before, in `request`, and it stays held until the recovery knows more. `expired`: its deadline has
 * passed; `mayBeSent`: by a ledger that was lost, as its merchant is fenced or the payout is in doubt. `not-waiting`: it waits for no release, and stays what it is; `released`: who let it go before, when and why,
 * where the history still has it. `moved`: why it waits is not any more what was shown, or more was said of it. `unknown`: nobody knows it.
 * `evidenceCount`: how much evidence there is before.
 */
export type ReleaseOutcome = { payoutId: string } & (
  | { kind: 'queued'; amount: Paise; holds: StoredHold[]; evidenceCount: number }
  | { kind: 'scheduled'; amount: Paise; holds: StoredHold[]; evidenceCount: number; paysAt: Instant }
  | { kind: 'to-be-cancelled'; request: string }
  | { kind: 'expired'; deadline: Instant; mayBeSent: 'fenced' | 'in-doubt' | null }
  | { kind: 'not-waiting'; state: State; reason: string | null; released: Release | null }
  | { kind: 'moved' }
  | { kind: 'unknown' }
)

/** `shown`: what a release would have done when the operator was asked; null: nobody was asked. */
export type ReleaseRequest = DecisionRequest & { shown: readonly ReleaseOutcome[] | null }

/** Decides, and stores state, history and messages together. Returns one outcome per payout, in order. */
export const releasePayouts = (request: ReleaseRequest, ledger: Ledger): Promise<ReleaseOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    ledger.db.transaction('release payouts', async (tx) =>
      storeDecided(tx, ledger, 'payout release', request, await decide(tx, { ...request, payoutIds })),
    ),
  )

/** What `releasePayouts` would do now. Stores nothing. */
export const previewRelease = (request: ReleaseRequest, db: Database): Promise<ReleaseOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    db.transaction('preview of a release', async (tx) =>
      outcomesOf(await decide(tx, { ...request, payoutIds })),
    ),
  )

async function decide(tx: Transaction, request: ReleaseRequest): Promise<PayoutsDecided<ReleaseOutcome>[]> {
  const { merchantId, payoutIds } = request
  const payouts = await lockById(tx, request)
  const isFenced = (await fencedMerchants(tx)).has(merchantId)
  const holds = Map.groupBy(
    await tx.run(holdsOf, { merchantId, payoutIds: [...payoutIds] }),
    ({ payoutId }) => payoutId,
  )
  const earlier = await tx.run(releasesOf, { merchantId, payoutIds: [...payoutIds] })
  const releases = new Map(earlier.map(({ payoutId, at, note }) => [payoutId, { at, note }]))
  const counts = await tx.run(evidenceCountsOfPayouts, { merchantId, ids: [...payoutIds] })
  const evidenceCount = new Map(counts.map(({ id, count }) => [id, count]))
  const shown = request.shown && new Map(request.shown.map((outcome) => [outcome.payoutId, outcome]))
  return payoutIds.map((payoutId): PayoutsDecided<ReleaseOutcome> => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } }
    const why = { holds: holds.get(payoutId) ?? [], evidenceCount: evidenceCount.get(payoutId) ?? 0 }
    const paysAt = why.holds[0]?.paysAt ?? tx.now
    const decision = release(payout, paysAt, words(request), tx.now)
    const outcome = {
      payoutId,
      ...outcomeOf(payout, decision, why, paysAt, releases.get(payoutId) ?? null, isFenced),
    }
    if (shown && 'change' in decision && !isDeepStrictEqual(outcome, shown.get(payoutId))) {
      return { decision: { nothing: true }, outcome: { payoutId, kind: 'moved' } }
    }
    return { decision, outcome }
  })
}

function outcomeOf(
  payout: Payout,
  decision: Decision,
  why: { holds: StoredHold[]; evidenceCount: number },
  paysAt: Instant,
  released: Release | null,
  isFenced: boolean,
) {
  const { state, reason, deadline, amount, cancelRequest } = payout
  if (!('change' in decision)) {
    if (!awaitsRelease(payout)) return { kind: 'not-waiting', state, reason, released } as const
    return cancelRequest === null
      ? ({
          kind: 'expired',
          deadline,
          mayBeSent: isFenced ? 'fenced' : wasNeverSent(payout) ? null : 'in-doubt',
        } as const)
      : ({ kind: 'to-be-cancelled', request: cancelRequest } as const)
  }
  return decision.change.after.state === 'queued'
    ? ({ kind: 'queued', amount, ...why } as const)
    : ({ kind: 'scheduled', amount, ...why, paysAt } as const)
}
