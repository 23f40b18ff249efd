import { words } from '../domain/mask.ts'
import { cancel } from '../domain/payout/cancel.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { isEnd, type State } from '../domain/payout/states.ts'
import { recordAct } from '../ledger/acts.ts'
import { fencedBeforeCancels, type Ledger } from '../ledger/ledger.ts'
import { CANCELS_KEPT_DAYS, lockForCancels, rememberCancels } from '../ledger/sql/cancels.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import { inBatches } from './in-batches.ts'
import {
  type DecisionRequest,
  lockByPayoutId,
  outcomesOf,
  type PayoutsDecided,
  storeDecided,
} from './store-decisions.ts'

/**
 * The result of a request to cancel. `review`: the gateway may hold an attempt, so a person decides. `rejected`: its command
 * breaks a rule, and the rejection waited for a recovery.
 * `after-recovery`: its merchant is fenced; the recovery cancels the payout unless the gateway has it. `requested`: the payout
 * keeps its state, and the kept request prevents another send. `too-late`: it has ended.
 * `remembered`: the ledger does not have it, and the request waits for its command.
 */
export type CancelOutcome = { payoutId: string } & (
  | { kind: 'cancelled' | 'rejected' | 'review'; from: State }
  | { kind: 'after-recovery' | 'requested' | 'too-late'; state: State }
  | { kind: 'remembered' }
)

/** Decides, and stores state, history and messages together. Returns one outcome per payout, in order. */
export const cancelPayouts = (request: DecisionRequest, ledger: Ledger): Promise<CancelOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    ledger.db.transaction('cancel payouts', async (tx) => {
      // An intake transaction of the same moment has either committed its commands or sees this request.
      await tx.run(lockForCancels, { merchantIds: [request.merchantId] })
      const decided = await decide(tx, { ...request, payoutIds })
      await remember(
        tx,
        request,
        decided.flatMap(({ outcome }) => (outcome.kind === 'remembered' ? [outcome.payoutId] : [])),
      )
      return storeDecided(tx, ledger, 'payout cancel', request, decided)
    }),
  )

/** What `cancelPayouts` would do now. Stores nothing. */
export const previewCancel = (request: DecisionRequest, db: Database): Promise<CancelOutcome[]> =>
  inBatches(request.payoutIds, (payoutIds) =>
    db.transaction('preview of a cancel', async (tx) =>
      outcomesOf(await decide(tx, { ...request, payoutIds })),
    ),
  )

/** Like a cancel message that arrives before its command. */
async function remember(
  tx: Transaction,
  { merchantId, by, reason }: DecisionRequest,
  payoutIds: string[],
): Promise<void> {
  if (payoutIds.length === 0) return
  const why = words({ by, reason })
  const cancels = payoutIds.map((payoutId) => ({ merchantId, payoutId, why }))
  await tx.run(rememberCancels, { cancels, source: 'OPERATOR' })
  const change = { subjects: payoutIds, before: null, after: { cancelledForDays: CANCELS_KEPT_DAYS } }
  await recordAct(tx, { command: 'payout cancel', by, reason, merchantId, ...change })
}

async function decide(tx: Transaction, request: DecisionRequest): Promise<PayoutsDecided<CancelOutcome>[]> {
  const { merchantId, payoutIds } = request
  const fenced = (await fencedBeforeCancels(tx, [merchantId])).has(merchantId)
  const payouts = await lockByPayoutId(tx, request)
  return payoutIds.map((payoutId) => {
    const payout = payouts.get(payoutId)
    if (!payout) return { decision: { nothing: true }, outcome: { payoutId, kind: 'remembered' } }
    const decision = cancel(payout, 'OPERATOR', words(request), { fenced })
    return { decision, outcome: outcomeOf(payout, 'change' in decision ? decision.change.after : payout) }
  })
}

function outcomeOf(before: Payout, after: Payout): CancelOutcome {
  const { payoutId, state } = before
  if (after.version > before.version) return { payoutId, kind: stoppedAs(after.state), from: state }
  if (isEnd(state)) return { payoutId, kind: 'too-late', state }
  return { payoutId, kind: state === 'held' || state === 'queued' ? 'after-recovery' : 'requested', state }
}

const stoppedAs = (state: State): 'cancelled' | 'rejected' | 'review' =>
  state === 'cancelled' || state === 'rejected' ? state : 'review'
