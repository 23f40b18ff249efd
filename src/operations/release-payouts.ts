import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import { awaitsRelease, release } from '../payout/holds.ts'
import type { Instant } from '../payout/instant.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import type { State } from '../payout/states.ts'
import type { Database, Transaction } from '../platform/postgres.ts'
import { holdsOf, type StoredHold } from './sql/holds.ts'

/** Who releases payouts that wait for a person, and why: kept in their history. */
export type ReleaseRequest = { merchantId: string; payoutIds: readonly string[]; by: string; reason: string }

/**
 * What asking for a payout's release comes to. `scheduled`: it waits on until `paysAt`. `expired`: its deadline has
 * passed. `not-waiting`: it waits for no release, and stays what it is. `unknown`: nobody knows it.
 */
export type ReleaseOutcome = { payoutId: string } & (
  | { kind: 'queued'; holds: StoredHold[] }
  | { kind: 'scheduled'; holds: StoredHold[]; paysAt: Instant }
  | { kind: 'expired'; deadline: Instant }
  | { kind: 'not-waiting'; state: State; reason: string | null }
  | { kind: 'unknown' }
)

/** So many in one transaction. */
const AT_ONCE = 500

/** Decides and stores: state, history and messages together. An outcome for each payout, in their order. */
export const releasePayouts = (request: ReleaseRequest, ledger: Ledger): Promise<ReleaseOutcome[]> =>
  inTurns(request, (part) =>
    ledger.db.transaction('release payouts', async (tx) => {
      const decided = await decide(tx, part)
      await storeDecisions(
        tx,
        ledger,
        decided.map(({ decision }) => decision),
      )
      return decided.map(({ outcome }) => outcome)
    }),
  )

/** What `releasePayouts` would do now. Stores nothing. */
export const previewRelease = (request: ReleaseRequest, db: Database): Promise<ReleaseOutcome[]> =>
  inTurns(request, (part) =>
    db.transaction('preview of a release', async (tx) =>
      (await decide(tx, part)).map(({ outcome }) => outcome),
    ),
  )

async function inTurns(
  request: ReleaseRequest,
  work: (part: ReleaseRequest) => Promise<ReleaseOutcome[]>,
): Promise<ReleaseOutcome[]> {
  const ids = [...new Set(request.payoutIds)]
  const outcomes: ReleaseOutcome[] = []
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    outcomes.push(...(await work({ ...request, payoutIds: ids.slice(from, from + AT_ONCE) })))
  }
  return outcomes
}

type Decided = { decision: Decision; outcome: ReleaseOutcome }

async function decide(
  tx: Transaction,
  { merchantId, payoutIds, by, reason }: ReleaseRequest,
): Promise<Decided[]> {
  const locked = await lockPayouts(
    tx,
    payoutIds.map((payoutId) => ({ merchantId, payoutId })),
  )
  const payouts = new Map(locked.map((payout) => [payout.payoutId, payout]))
  const holds = Map.groupBy(
    await tx.run(holdsOf, { merchantId, payoutIds: [...payoutIds] }),
    ({ payoutId }) => payoutId,
  )
  return payoutIds.map((payoutId): Decided => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'unknown' } }
    const why = holds.get(payoutId) ?? []
    const paysAt = why[0]?.paysAt ?? tx.now
    const decision = release(payout, paysAt, `${by}: ${reason}`, tx.now)
    return { decision, outcome: { payoutId, ...outcomeOf(payout, decision, why, paysAt) } }
  })
}

function outcomeOf(payout: Payout, decision: Decision, holds: StoredHold[], paysAt: Instant) {
  const { state, reason, deadline } = payout
  if (!('change' in decision)) {
    return awaitsRelease(payout)
      ? ({ kind: 'expired', deadline } as const)
      : ({ kind: 'not-waiting', state, reason } as const)
  }
  return decision.change.after.state === 'queued'
    ? ({ kind: 'queued', holds } as const)
    : ({ kind: 'scheduled', holds, paysAt } as const)
}
