import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import type { ApplyAnswer } from '../payout/answers.ts'
import type { Judgement } from '../payout/judgement.ts'
import type { Timetable } from '../payout/transition.ts'
import type { Logger } from '../platform/log.ts'
import { afterAnswers } from './pace.ts'
import { lockPurse, setMood } from './sql/purse.ts'

/** The answer to one apply call. `tell`: it may change the merchant's pace (see pace.ts). */
export type Outcome = {
  merchantId: string
  payoutId: string
  attempt: number
  answer: ApplyAnswer
  tell: boolean
}

export type RecordDeps = {
  ledger: Ledger
  judge: Judgement
  tables: ReadonlyMap<string, Timetable>
  log: Logger
}

/**
 * Records answers as they came, many in one transaction. Locks merchants before payouts, as every claim
 * does. One result per outcome.
 */
export async function record(
  outcomes: readonly Outcome[],
  { ledger, judge, tables, log }: RecordDeps,
): Promise<undefined[]> {
  await ledger.db.transaction('record apply answers', async (tx) => {
    const watched = [
      ...new Set(outcomes.filter(({ tell }) => tell).map(({ merchantId }) => merchantId)),
    ].sort()
    for (const merchantId of watched) {
      const [purse] = await tx.run(lockPurse, { merchantId })
      if (!purse) continue
      const answers = outcomes
        .filter((outcome) => outcome.merchantId === merchantId)
        .map(({ answer }) => answer)
      const mood = afterAnswers(purse, answers, tx.now)
      await tx.run(setMood, { merchantId, ...mood })
      if (mood.circuitOpened > purse.circuitOpened) {
        const forMs = (mood.circuitOpenUntil ?? tx.now) - tx.now
        log.warn(
          { merchantId, reason: mood.circuitReason, forMs },
          'circuit opened: nothing is sent meanwhile',
        )
      }
    }
    const locked = await lockPayouts(tx, outcomes)
    const payouts = new Map(locked.map((payout) => [`${payout.merchantId}:${payout.payoutId}`, payout]))
    const decisions = outcomes.map(({ merchantId, payoutId, attempt, answer }) => {
      const key = `${merchantId}:${payoutId}`
      const payout = payouts.get(key)
      if (!payout) throw new Error(`payout ${key} was sent and is gone from the ledger`)
      const table = tables.get(merchantId) as Timetable
      const decision = judge.recordApply(payout, attempt, answer, table, tx.now)
      if ('change' in decision) payouts.set(key, decision.change.after)
      return decision
    })
    await storeDecisions(tx, ledger, decisions)
  })
  return outcomes.map(() => undefined)
}
