import type { Decisions } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Paise } from '../../domain/money.ts'
import { NEVER_SENT, neverSent } from '../../domain/payout/ledger-lacks-attempt.ts'
import type { QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { answeredElsewhere, showsOrder } from '../../domain/payout/record-apply-answer.ts'
import { isEnd } from '../../domain/payout/states.ts'
import { storeEvidence } from '../../ledger/evidence/store-evidence.ts'
import { keyOf, type Ledger, lockPayouts } from '../../ledger/ledger.ts'
import type { Logger } from '../../platform/log.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { afterAnswers } from './merchant-gate.ts'
import { attemptsMade } from './sql/claim.ts'
import { lockFunds, saveCircuit } from './sql/funds.ts'

/** The answer to one apply call. `tell`: it can change the merchant's pace (see `canChangePace`). */
export type ApplyOutcome = {
  merchantId: string
  payoutId: string
  attempt: number
  /** Who made the attempt, and when its lease ends. With its number, they distinguish it from every other. */
  owner: string
  leaseUntil: Instant
  /** The payout's amount. */
  amount: Paise
  /** What its claim kept for the fee. */
  keptFee: Paise
  answer: ApplyAnswer
  tell: boolean
}

export type RecordDeps = {
  ledger: Ledger
  decisions: Decisions
  queryPolicies: ReadonlyMap<string, QueryPolicy>
  log: Logger
}

/**
 * Records answers as they came, many in one transaction. Locks merchants before payouts, as every claim does. Returns one
 * result per outcome.
 */
export async function recordAnswers(
  outcomes: readonly ApplyOutcome[],
  deps: RecordDeps,
): Promise<undefined[]> {
  const { decisions, queryPolicies, log } = deps
  await storeEvidence(deps, 'record apply answers', async (tx) => {
    await moveCircuits(tx, outcomes, log)
    const locked = await lockPayouts(tx, outcomes)
    const attempts = await attemptsOf(tx, outcomes)
    return (fenced) => {
      const payouts = new Map(locked.map((payout) => [keyOf(payout), payout]))
      return outcomes.map((outcome) => {
        const { merchantId, answer } = outcome
        const key = keyOf(outcome)
        const payout = payouts.get(key)
        if (!payout) return gone(outcome)
        const made = attempts.get(attemptKey(outcome))
        if (!made?.isLost && !(made && isSame(made, outcome))) return foreign(payout, outcome, Boolean(made))
        const queryPolicy = queryPolicies.get(merchantId) as QueryPolicy
        const decided = decide(payout, outcome, made, (after, attempt) =>
          decisions.recordApply(after, attempt, answer, queryPolicy, tx.now),
        )
        const decision = fenced.has(merchantId)
          ? decisions.whileFenced(decided, queryPolicy, tx.now)
          : decided
        if ('change' in decision) payouts.set(key, decision.change.after)
        return decision
      })
    }
  })
  return outcomes.map(() => undefined)
}

/** What answers show of a merchant's gateway: its circuit, and what the balance lost. */
async function moveCircuits(tx: Transaction, outcomes: readonly ApplyOutcome[], log: Logger): Promise<void> {
  const watched = [...new Set(outcomes.filter(({ tell }) => tell).map(({ merchantId }) => merchantId))].sort()
  for (const merchantId of watched) {
    const [funds] = await tx.run(lockFunds, { merchantId })
    if (!funds) continue
    const answers = outcomes.filter((outcome) => outcome.merchantId === merchantId)
    const circuit = afterAnswers(funds, answers, tx.now)
    await tx.run(saveCircuit, { merchantId, ...circuit })
    if (circuit.circuitOpened > funds.circuitOpened) {
      const forMs = (circuit.circuitOpenUntil ?? tx.now) - tx.now
      log.warn(
        { merchantId, reason: circuit.circuitReason, forMs },
        'circuit opened: payoutd sends nothing until it closes',
      )
    } else if (circuit.circuitOpened === 0 && funds.circuitOpened > 0) {
      log.info({ merchantId }, 'circuit closed: the gateway answers, sending continues')
    }
  }
}

/**
 * Where no attempt is known to be alive, the one that this answers is, at the account that it was sent to. A doubted payout may have
 * others elsewhere.
 */
function decide(
  payout: Payout,
  { attempt, answer }: ApplyOutcome,
  made: AttemptMade,
  recordApply: (payout: Payout, attempt: number | null) => Decision,
): Decision {
  const isToBind = showsOrder(answer) && payout.accountId === null && !payout.doubted
  const isElsewhere =
    showsOrder(answer) && !isToBind && !isEnd(payout.state) && isOfElsewhere(payout, made, answer)
  if (isElsewhere) return answeredElsewhere(payout, made.accountId, answer)
  return recordApply(
    isToBind ? { ...payout, accountId: made.accountId } : payout,
    made.isLost ? null : attempt,
  )
}

/**
 * A lost attempt, whose account nobody knows, may have another order than the known one; without a number it may be that of the
 * latest attempt, unless that was made since.
 */
const isOfElsewhere = (
  { attempt, accountId, agentpayOrderId }: Payout,
  made: AttemptMade,
  answer: ApplyAnswer,
): boolean => {
  if (!made.isLost) return made.accountId !== null && made.accountId !== accountId
  const isOther =
    answer.kind === 'accepted' ? answer.agentpayOrderId !== agentpayOrderId : made.attempt < attempt
  return accountId !== null && isOther
}

type AttemptMade = { attempt: number; accountId: string | null; isLost: boolean }

type Made = Pick<ApplyOutcome, 'merchantId' | 'payoutId' | 'attempt' | 'owner' | 'leaseUntil'>

const attemptKey = ({ attempt, ...key }: Pick<Made, 'merchantId' | 'payoutId' | 'attempt'>): string =>
  mapKey(key.merchantId, key.payoutId, attempt)

const isSame = (made: Made, other: Made): boolean =>
  made.owner === other.owner && made.leaseUntil === other.leaseUntil

/** By attempt, what the ledger knows about the answered ones. */
async function attemptsOf(tx: Transaction, outcomes: readonly ApplyOutcome[]) {
  const made = await tx.run(attemptsMade, { answered: outcomes })
  return new Map(made.map((each) => [attemptKey(each), each]))
}

/** The ledger was set back: it does not know this attempt, or another attempt has its number. */
function foreign(payout: Payout, { attempt, answer }: ApplyOutcome, isKnown: boolean): Decision {
  const known = isKnown
    ? 'the ledger has another attempt under that number'
    : 'the ledger has no such attempt'
  const detail = `the gateway answered attempt ${attempt} (${answer.kind}), but ${known}`
  const order = payout.attempt > 0 ? 'order-besides' : 'order'
  return neverSent(payout, 'APPLY', detail, answer.exchange, showsOrder(answer) ? order : 'attempt')
}

/** The ledger has lost even the command, which intake reads again. */
const gone = ({ merchantId, payoutId, attempt, answer }: ApplyOutcome): Decision => ({
  anomaly: {
    merchantId,
    payoutId,
    orderNo: orderNumber(merchantId, payoutId, 1),
    kind: NEVER_SENT,
    detail: `the gateway answered attempt ${attempt} (${answer.kind}), but the payout is gone from the ledger`,
    source: 'APPLY',
    exchange: answer.exchange,
  },
})
