import { isDeepStrictEqual } from 'node:util'
import type { Payin, PayinChange } from '../domain/payin/payin.ts'
import { type PayinResolution, resolve } from '../domain/payin/resolve.ts'
import type { PayinState } from '../domain/payin/states.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { lockUtr, otherWithUtr } from '../payins/sql/story.ts'
import { lockPayins, type PayinKey, storePayins } from '../payins/store.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { evidenceCountsOfPayins } from '../queries/sql/evidence-counts.ts'

/** What a person is shown of a payin that they decide about: its version, and how much evidence there is. */
type ShownPayin = { version: number; evidenceCount: number }

/** `shown`: what the operator was shown; null: nobody was asked. */
export type PayinResolveRequest = PayinKey &
  Decided & { resolution: PayinResolution; shown: ShownPayin | null }

/**
 * The result of a person's decision. `shown`: the payin before it. `moved`: it is in review, but not as it was shown.
 * `utr-taken`: another payin has the UTR. `unknown`: nobody knows the payin.
 */
export type PayinResolveOutcome =
  | { kind: 'resolved'; shown: ShownPayin; payin: Payin }
  | { kind: 'moved' }
  | { kind: 'not-in-review'; state: PayinState }
  | { kind: 'utr-taken'; utr: string; takenBy: PayinKey }
  | { kind: 'unknown' }

/** Decides, and stores state, history, message and the record of the act together. */
export function resolvePayin(request: PayinResolveRequest, ledger: Ledger): Promise<PayinResolveOutcome> {
  return ledger.db.transaction('resolve payin', async (tx) => {
    const { change, outcome } = await decide(tx, request)
    if (change) {
      await storePayins(tx, ledger, [{ change }])
      const { by, reason, merchantId, payinId } = request
      const [before, after] = [stateOf(change.before), stateOf(change.after)]
      const act = { by, reason, merchantId, subjects: [payinId], before, after }
      await recordAct(tx, { command: 'payin resolve', ...act })
    }
    return outcome
  })
}

/** What `resolvePayin` would do now. Stores nothing. */
export const previewResolve = (request: PayinResolveRequest, db: Database): Promise<PayinResolveOutcome> =>
  db.transaction('preview of a resolution of a payin', async (tx) => (await decide(tx, request)).outcome)

async function decide(
  tx: Transaction,
  request: PayinResolveRequest,
): Promise<{ change: PayinChange | null; outcome: PayinResolveOutcome }> {
  const [payin] = await lockPayins(tx, [request])
  if (!payin) return { change: null, outcome: { kind: 'unknown' } }
  const { merchantId, payinId, state, version } = payin
  const change = resolve(payin, request.resolution, request, tx.now)
  if (!change) return { change, outcome: { kind: 'not-in-review', state } }
  const [said] = await tx.run(evidenceCountsOfPayins, { merchantId, ids: [payinId] })
  const shown = { version, evidenceCount: said?.count ?? 0 }
  if (request.shown !== null && !isDeepStrictEqual(request.shown, shown))
    return { change: null, outcome: { kind: 'moved' } }
  if (request.resolution.kind === 'paid') {
    const { utr } = request.resolution
    await tx.run(lockUtr, { utr })
    const [takenBy] = await tx.run(otherWithUtr, { merchantId, payinId, utr })
    if (takenBy) return { change: null, outcome: { kind: 'utr-taken', utr, takenBy } }
  }
  return { change, outcome: { kind: 'resolved', shown, payin: change.after } }
}

const stateOf = ({ state, reason, version, utr }: Payin) => ({ state, reason, version, utr })
