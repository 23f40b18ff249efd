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
import { holdsOf, releasesOf, type StoredHold } from '../queries/sql/holds.ts'
import { timesSaidOfPayouts } from '../queries/sql/times-said.ts'
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
 * The result of a request to release a payout. `scheduled`: it still waits, until `paysAt`. `to-be-cancelled`: somebody asked for
 * that before, in `request`, and it stays held until the recovery knows more. `expired`: its deadline has passed; `mayBeSent`: a
 * lost ledger may have sent it, because its merchant is fenced or the payout is in doubt. `not-waiting`: it waits for no release
 * and stays as it is; `released`: who released it before, when and why, if the history still has it. `moved`: it no longer waits
 * for the reason that was shown, or more was reported about it. `unknown`: nobody knows it.
 * `timesSaid`: how often something was reported about it before.
 */
export type ReleaseOutcome = { payoutId: string } & (
  | { kind: 'queued'; amount: Paise; holds: StoredHold[]; timesSaid: number }
  | { kind: 'scheduled'; amount: Paise; holds: StoredHold[]; timesSaid: number; paysAt: Instant }
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
  const times = await tx.run(timesSaidOfPayouts, { merchantId, ids: [...payoutIds] })
  const timesSaid = new Map(times.map(({ id, times }) => [id, times]))
  const shown = request.shown && new Map(request.shown.map((outcome) => [outcome.payoutId, outcome]))
  return payoutIds.map((payoutId): PayoutsDecided<ReleaseOutcome> => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } }
    const why = { holds: holds.get(payoutId) ?? [], timesSaid: timesSaid.get(payoutId) ?? 0 }
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
  why: { holds: StoredHold[]; timesSaid: number },
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
