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
import { NO_OTHER_PAYMENTS, type OtherPayments, otherPayments } from '../queries/other-payments.ts'
import { evidenceCountsOfPayouts } from '../queries/sql/evidence-counts.ts'
import { holdsOf, releasesOf, type StoredHold } from '../queries/sql/payouts/holds.ts'
import { inBatches } from './in-batches.ts'
import { takeSendTurn } from './sql/send-turns.ts'
import {
  type DecisionRequest,
  lockByPayoutId,
  outcomesOf,
  type PayoutsDecided,
  storeDecided,
} from './store-decisions.ts'
import { comparable, type LookForOthers, unseenOf } from './unseen-payments.ts'

/** When a person released a payout; `note`: who, and why. */
type Release = { at: Instant; note: string }

/**
 * What a person should see before a payout is released. `otherPayments`: what else pays the same by now, apart from the payments
 * that a hold names for that. `evidenceCount`: how much evidence there is.
 */
type WhatSpeaksAgainst = { holds: StoredHold[]; otherPayments: OtherPayments; evidenceCount: number }

/**
 * What asking for a payout's release comes to. `scheduled`: it waits on until `paysAt`. `to-be-cancelled`:
 * somebody asked for that before, in `request`, and it stays held until the recovery knows more. `expired`: its deadline has
 * passed; `mayBeSent`: by a ledger that was lost, as its merchant is fenced or the payout is in doubt. `not-waiting`: it waits for no release, and stays what it is; `released`: who let it go before, when and why,
 * where the history still has it. `unseen`: these others pay the same, and nobody has been shown them. `moved`: why it waits is not any more what was shown, or more was said of it. `unknown`: nobody knows it.
 */
export type ReleaseOutcome = { payoutId: string } & (
  | ({ kind: 'queued'; amount: Paise } & WhatSpeaksAgainst)
  | ({ kind: 'scheduled'; amount: Paise; paysAt: Instant } & WhatSpeaksAgainst)
  | { kind: 'unseen'; otherPayments: OtherPayments }
  | { kind: 'to-be-cancelled'; request: string }
  | { kind: 'expired'; deadline: Instant; mayBeSent: 'fenced' | 'in-doubt' | null }
  | { kind: 'not-waiting'; state: State; reason: string | null; released: Release | null }
  | { kind: 'moved' }
  | { kind: 'unknown' }
)

/** `shown`: what a release would have done when the operator was asked; null: nobody was asked. */
export type ReleaseRequest = DecisionRequest & LookForOthers & { shown: readonly ReleaseOutcome[] | null }

export const isReleased = (
  outcome: ReleaseOutcome,
): outcome is Extract<ReleaseOutcome, { kind: 'queued' | 'scheduled' }> =>
  outcome.kind === 'queued' || outcome.kind === 'scheduled'

/** Decides, and stores state, history and messages together. Returns one outcome per payout, in order. */
export const releasePayouts = (request: ReleaseRequest, ledger: Ledger): Promise<ReleaseOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    ledger.db.transaction('release payouts', async (tx) => {
      await tx.run(takeSendTurn, request)
      return storeDecided(tx, ledger, 'payout release', request, await decide(tx, request, payoutIds))
    }),
  )

/** What `releasePayouts` would do now. Stores nothing. */
export const previewRelease = (request: ReleaseRequest, db: Database): Promise<ReleaseOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    db.transaction('preview of a release', async (tx) => outcomesOf(await decide(tx, request, payoutIds))),
  )

/** Decides about these payouts, which are some of the request's. */
async function decide(
  tx: Transaction,
  request: ReleaseRequest,
  payoutIds: readonly string[],
): Promise<PayoutsDecided<ReleaseOutcome>[]> {
  const { merchantId } = request
  const asked = { merchantId, payoutIds: [...payoutIds] }
  const payouts = await lockByPayoutId(tx, { ...request, payoutIds })
  const isFenced = (await fencedMerchants(tx)).has(merchantId)
  const holds = Map.groupBy(await tx.run(holdsOf, asked), ({ payoutId }) => payoutId)
  const others = await otherPayments(tx, asked, request.payPeriod, tx.now)
  const earlier = await tx.run(releasesOf, asked)
  const releases = new Map(earlier.map(({ payoutId, at, note }) => [payoutId, { at, note }]))
  const counts = await tx.run(evidenceCountsOfPayouts, { merchantId, ids: asked.payoutIds })
  const evidenceCount = new Map(counts.map(({ id, count }) => [id, count]))
  const isAsShown = comparison(request.shown)
  const together = new Set(request.payoutIds)
  return payoutIds.map((payoutId): PayoutsDecided<ReleaseOutcome> => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } }
    const heldFor = holds.get(payoutId) ?? []
    const why = {
      holds: heldFor,
      otherPayments: notNamed(heldFor, others.get(payoutId) ?? NO_OTHER_PAYMENTS),
      evidenceCount: evidenceCount.get(payoutId) ?? 0,
    }
    const paysAt = heldFor[0]?.paysAt ?? tx.now
    const decision = release(payout, paysAt, words(request), tx.now)
    const outcome = {
      payoutId,
      ...outcomeOf(payout, decision, why, paysAt, releases.get(payoutId) ?? null, isFenced),
    }
    if (!('change' in decision)) return { decision, outcome }
    const unseen = unseenOf(why.otherPayments, request.known, together)
    if (unseen)
      return { decision: { nothing: true }, outcome: { payoutId, kind: 'unseen', otherPayments: unseen } }
    return isAsShown(outcome)
      ? { decision, outcome }
      : { decision: { nothing: true }, outcome: { payoutId, kind: 'moved' } }
  })
}

const notNamed = (holds: readonly StoredHold[], { found, thereMayBeMore }: OtherPayments): OtherPayments => ({
  found: found.filter(
    (other) =>
      !holds.some(
        ({ reason, earlierPayoutId }) =>
          reason !== 'beneficiary-changed' && earlierPayoutId === other.payoutId,
      ),
  ),
  thereMayBeMore,
})

/** Whether an outcome is what was shown. What this release does to other payouts of the request is no change. */
function comparison(shown: readonly ReleaseOutcome[] | null): (outcome: ReleaseOutcome) => boolean {
  if (shown === null) return () => true
  const before = new Map(shown.map((outcome) => [outcome.payoutId, outcome]))
  const isReleasedToo = (payoutId: string | null): boolean => {
    const outcome = payoutId === null ? undefined : before.get(payoutId)
    return outcome !== undefined && isReleased(outcome)
  }
  const apartFromThis = (outcome: ReleaseOutcome | undefined) =>
    outcome && isReleased(outcome)
      ? {
          ...outcome,
          holds: outcome.holds.map((hold) =>
            isReleasedToo(hold.earlierPayoutId) ? { ...hold, earlierState: null } : hold,
          ),
          otherPayments: comparable({
            ...outcome.otherPayments,
            found: outcome.otherPayments.found.filter(({ payoutId }) => !isReleasedToo(payoutId)),
          }),
        }
      : outcome
  return (outcome) => isDeepStrictEqual(apartFromThis(outcome), apartFromThis(before.get(outcome.payoutId)))
}

function outcomeOf(
  payout: Payout,
  decision: Decision,
  why: WhatSpeaksAgainst,
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
