import { keyOf, type Ledger, lockPayouts } from '../ledger/ledger.ts'
import { storeEvidence } from '../ledger/store-evidence.ts'
import type { ApplyAnswer } from '../payout/answers.ts'
import { orderNumber } from '../payout/identifiers.ts'
import type { Judgement } from '../payout/judgement.ts'
import { NEVER_SENT } from '../payout/never-sent.ts'
import type { Decision } from '../payout/payout.ts'
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
export async function record(outcomes: readonly Outcome[], deps: RecordDeps): Promise<undefined[]> {
  const { judge, tables, log } = deps
  await storeEvidence(deps, 'record apply answers', async (tx, store) => {
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
      } else if (mood.circuitOpened === 0 && purse.circuitOpened > 0) {
        log.info({ merchantId }, 'circuit closed: the gateway answers, so sending goes on')
      }
    }
    const locked = await lockPayouts(tx, outcomes)
    const payouts = new Map(locked.map((payout) => [keyOf(payout), payout]))
    const decisions = outcomes.map((outcome) => {
      const { merchantId, attempt, answer } = outcome
      const key = keyOf(outcome)
      const payout = payouts.get(key)
      if (!payout) return gone(outcome)
      const table = tables.get(merchantId) as Timetable
      const decision = judge.recordApply(payout, attempt, answer, table, tx.now)
      if ('change' in decision) payouts.set(key, decision.change.after)
      return decision
    })
    await store(decisions)
  })
  return outcomes.map(() => undefined)
}

/** The ledger has lost even the command, which intake reads again. */
const gone = ({ merchantId, payoutId, attempt, answer }: Outcome): Decision => ({
  anomaly: {
    merchantId,
    payoutId,
    orderNo: orderNumber(merchantId, payoutId, 1),
    kind: NEVER_SENT,
    detail: `attempt ${attempt} was answered (${answer.kind}), and the payout is gone from the ledger`,
    source: 'APPLY',
    exchange: answer.exchange,
  },
})
