import type { PayoutKey } from '../domain/identifiers.ts'
import type { Change, Decision, Payout } from '../domain/payout/payout.ts'
import { recordAct } from '../ledger/acts.ts'
import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { evidenceCountsOfPayouts } from '../queries/sql/evidence-counts.ts'

/** A named person's decision about payouts of one merchant, and why: their history keeps it. */
export type DecisionRequest = {
  merchantId: string
  payoutIds: readonly string[]
  by: string
  reason: string
}

/** What was decided about one payout, and the outcome that the person sees. */
export type PayoutsDecided<Outcome> = { decision: Decision; outcome: Outcome }

/** Locks payouts by their payoutIds; unknown ones are absent from the result. */
export async function lockByPayoutId(
  tx: Transaction,
  { merchantId, payoutIds }: DecisionRequest,
): Promise<ReadonlyMap<string, Payout>> {
  const keys = payoutIds.map((payoutId) => ({ merchantId, payoutId }))
  return new Map((await lockPayouts(tx, keys)).map((payout) => [payout.payoutId, payout]))
}

/** Stores a decision's state, history, messages and record of the act together. Returns the outcomes. */
export async function storeDecided<Outcome>(
  tx: Transaction,
  ledger: Ledger,
  command: string,
  { merchantId, by, reason }: DecisionRequest,
  decided: readonly PayoutsDecided<Outcome>[],
): Promise<Outcome[]> {
  const decisions = decided.map(({ decision }) => decision)
  await storeDecisions(tx, ledger, decisions)
  const changes = decisions.flatMap((decision) => ('change' in decision ? [decision.change] : []))
  if (changes.length > 0) await recordAct(tx, { command, by, reason, merchantId, ...statesIn(changes) })
  return outcomesOf(decided)
}

/** How much evidence there is about a payout: see `evidenceCountsOfPayouts`. */
export async function countEvidence(tx: Transaction, { merchantId, payoutId }: PayoutKey): Promise<number> {
  const [found] = await tx.run(evidenceCountsOfPayouts, { merchantId, ids: [payoutId] })
  return found?.count ?? 0
}

/** What an act changed about payouts; each record includes `more` with the current state. */
export const statesIn = (changes: readonly Change[], more: object = {}) => ({
  subjects: changes.map(({ after }) => after.payoutId),
  before: Object.fromEntries(
    changes.map(({ before, after }) => [
      before.payoutId,
      { ...stateOf(before), ...requestOf(before, after) },
    ]),
  ),
  after: Object.fromEntries(
    changes.map(({ before, after }) => [
      after.payoutId,
      { ...stateOf(after), ...requestOf(after, before), ...more },
    ]),
  ),
})

const stateOf = ({ state, reason, version, utr }: Payout) => ({ state, reason, version, utr })

/** A request to cancel that is only kept changes nothing else. */
const requestOf = ({ cancelRequest }: Payout, other: Payout) =>
  cancelRequest === other.cancelRequest ? {} : { cancelRequest }

export const outcomesOf = <Outcome>(decided: readonly PayoutsDecided<Outcome>[]): Outcome[] =>
  decided.map(({ outcome }) => outcome)
