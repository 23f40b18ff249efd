import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import type { Transaction } from '../platform/postgres.ts'

/** A decision of a named person about payouts of one merchant, and why: kept in their history. */
export type DecisionRequest = {
  merchantId: string
  payoutIds: readonly string[]
  by: string
  reason: string
}

/** What was decided about one payout, and what a person is told of it. */
export type Decided<Outcome> = { decision: Decision; outcome: Outcome }

/** Locks payouts, by their payoutIds; those that nobody knows are not there. */
export async function lockById(
  tx: Transaction,
  { merchantId, payoutIds }: DecisionRequest,
): Promise<ReadonlyMap<string, Payout>> {
  const keys = payoutIds.map((payoutId) => ({ merchantId, payoutId }))
  return new Map((await lockPayouts(tx, keys)).map((payout) => [payout.payoutId, payout]))
}

/** Stores what was decided: state, history and messages together. Returns the outcomes. */
export async function storeDecided<Outcome>(
  tx: Transaction,
  ledger: Ledger,
  decided: readonly Decided<Outcome>[],
): Promise<Outcome[]> {
  await storeDecisions(
    tx,
    ledger,
    decided.map(({ decision }) => decision),
  )
  return outcomesOf(decided)
}

export const outcomesOf = <Outcome>(decided: readonly Decided<Outcome>[]): Outcome[] =>
  decided.map(({ outcome }) => outcome)
