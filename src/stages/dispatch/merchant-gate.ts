import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import type { Instant } from '../../domain/instant.ts'
import { type Paise, paise } from '../../domain/money.ts'
import { type Fees, feesAfter, oddFee } from '../../domain/payout/fee.ts'

/** A merchant's row, as the gate reads it under the row's lock. */
export type MerchantFunds = Fees & {
  pausedReason: string | null
  /** Since when the merchant is fenced after its ledger was restored; null: it is not. */
  recoveringSince: Instant | null
  /** Null: payoutd never asked for it, or a "balance short" voided it. */
  available: Paise | null
  snapshotAt: Instant | null
  snapshotInDoubt: Paise
  snapshotClaimed: Paise
  claimedTotal: Paise
  rateNext: Instant | null
  /** Applies a second that the gateway seems to take, because it answered "later" to more; null: no limit was met. */
  learnedRate: number | null
  /** When that was last lowered, and raised. */
  rateLoweredAt: Instant | null
  rateRaisedAt: Instant | null
  warmUp: number
  consecutiveFailures: number
  refusals: number
  circuitOpened: number
  circuitOpenUntil: Instant | null
}

export type PaceLimits = {
  maxInFlight: number
  /** Applies per second over all processes; null: as fast as the answers come. */
  ratePerSecond: number | null
}

/** What a claim may take now, and why not more. */
export type Gate = {
  room: number
  askBalance: boolean
  closed:
    | 'locked'
    | 'other-settings'
    | 'other-version'
    | 'set-back'
    | 'recovering'
    | 'paused'
    | 'circuit-open'
    | 'callbacks-behind'
    | 'balance-unknown'
    | 'in-flight'
    | 'rate'
    | null
}

const BALANCE_MAX_AGE_MS = 5_000
const RATE_BURST_MS = 1_000
/** From this lag on dispatch claims fewer payouts; from `LAG_STOP_MS` on, none. */
const LAG_SLOW_MS = 300
const LAG_STOP_MS = 1_500

/** A canary of 1, then 8, then all, by the number of good answers since the canary began. */
export const WARM = 9
const warmUpLimit = (good: number): number => (good === 0 ? 1 : good < WARM ? 8 : Number.POSITIVE_INFINITY)

export const closed = (why: Gate['closed'], askBalance = false): Gate => ({
  room: 0,
  askBalance,
  closed: why,
})

/**
 * How many payouts of a merchant may leave now. `inFlight` counts all processes. `lagMs` is how far the slowest callback
 * endpoint is behind with its callbacks, which come first.
 */
export function gate(
  funds: MerchantFunds,
  inFlight: number,
  lagMs: number,
  limits: PaceLimits,
  now: Instant,
): Gate {
  if (funds.recoveringSince !== null) return closed('recovering')
  if (funds.pausedReason !== null) return closed('paused')
  if (isOpen(funds, now)) return closed('circuit-open')
  if (lagMs >= LAG_STOP_MS) return closed('callbacks-behind')
  const stale = funds.snapshotAt === null || Math.abs(now - funds.snapshotAt) > BALANCE_MAX_AGE_MS
  if (funds.available === null) return closed('balance-unknown', true)

  const slots = Math.min(limits.maxInFlight, warmUpLimit(funds.warmUp)) - inFlight
  const patience = lagMs >= LAG_SLOW_MS ? Math.ceil(slots / 4) : slots
  const rate = rateRoom(funds.rateNext, rateOf(funds, limits), now)
  const room = Math.max(0, Math.min(patience, rate))
  return {
    room,
    askBalance: stale,
    closed: room > 0 ? null : slots <= 0 ? 'in-flight' : 'rate',
  }
}

/** Applies per second, by the settings and by what the gateway seems to take; null: as fast as the answers come. */
export function rateOf(
  { learnedRate }: Pick<MerchantFunds, 'learnedRate'>,
  { ratePerSecond }: PaceLimits,
): number | null {
  const rate = Math.min(ratePerSecond ?? Number.POSITIVE_INFINITY, learnedRate ?? Number.POSITIVE_INFINITY)
  return Number.isFinite(rate) ? rate : null
}

function rateRoom(rateNext: Instant | null, perSecond: number | null, now: Instant): number {
  if (perSecond === null) return Number.POSITIVE_INFINITY
  return Math.floor(((now - rateBase(rateNext, now)) * perSecond) / 1000)
}

/** A clock that was set back since wrote any time that lies further ahead than payoutd ever sets it. */
const rateBase = (rateNext: Instant | null, now: Instant): Instant =>
  rateNext === null || rateNext > now + RATE_BURST_MS
    ? now - RATE_BURST_MS
    : Math.max(rateNext, now - RATE_BURST_MS)

/** The time up to which the rate budget is used, once `count` more have left. */
export const rateAfter = (
  rateNext: Instant | null,
  perSecond: number | null,
  count: number,
  now: Instant,
): Instant | null => (perSecond === null ? null : rateBase(rateNext, now) + (count * 1000) / perSecond)

/** The part of a merchant's row that answers change. */
export type CircuitState = Pick<
  MerchantFunds,
  | 'available'
  | 'claimedTotal'
  | 'feeEstimate'
  | 'feeShare'
  | 'learnedRate'
  | 'rateLoweredAt'
  | 'rateRaisedAt'
  | 'warmUp'
  | 'consecutiveFailures'
  | 'refusals'
  | 'circuitOpened'
  | 'circuitOpenUntil'
> & {
  circuitReason: string | null
}

/**
 * How many bad answers in a row open the circuit. Unknown results take more, because they may be single slow orders, and
 * "later" more still once all leave at once, because the gateway may answer it to all of them.
 */
const REFUSED_RUN = 5
const UNKNOWN_RUN = 20
const LATER_RUN = 500
const CIRCUIT_FIRST_MS = 1_000
const CIRCUIT_LONGEST_MS = 60_000

/**
 * Applies answers to a merchant's pace, one after another. An open circuit ends in a canary again: one bad answer to that opens
 * it for twice as long.
 */
export function afterAnswers(
  circuit: CircuitState,
  answers: readonly AnsweredClaim[],
  now: Instant,
): CircuitState {
  return answers.reduce((each, answered) => afterAnswer(each, answered, now), circuit)
}

/** An answer to the apply of a payout of so many paise. */
export type Answered = { amount: Paise; answer: ApplyAnswer }

/** The same, with what the payout's claim kept for the fee. */
export type AnsweredClaim = Answered & { keptFee: Paise }

function afterAnswer(circuit: CircuitState, answered: AnsweredClaim, now: Instant): CircuitState {
  const { answer } = answered
  switch (answer.kind) {
    case 'accepted':
      return {
        ...warmer(faster(circuit, now)),
        ...otherFees(circuit, answered),
        claimedTotal: withFee(circuit, answered, answer.fee),
      }
    case 'refused':
      // A gateway that refuses everything keeps its merchant in the canary, and people learn of it.
      return { ...calm(circuit), refusals: circuit.warmUp < WARM ? circuit.refusals + 1 : 0 }
    case 'duplicate':
      return warmer(circuit)
    case 'retry-later': {
      const slowed = answer.balanceShort ? circuit : slower(circuit, now)
      // The gateway answers, so a canary goes on: until the gateway does more than that, one payout leaves a second.
      const probed = circuit.circuitOpened > 0 && !isOpen(circuit, now)
      const limit = circuit.warmUp < WARM ? UNKNOWN_RUN : LATER_RUN
      const after = probed
        ? {
            ...slowed,
            circuitOpenUntil: now + CIRCUIT_FIRST_MS,
            consecutiveFailures: circuit.consecutiveFailures + 1,
            circuitReason: `${circuit.consecutiveFailures + 1} × ${answer.code}`,
          }
        : afterBad(slowed, limit, answer.code, now)
      return answer.balanceShort ? { ...after, available: null } : after
    }
    case 'not-sent':
      return afterBad(circuit, REFUSED_RUN, answer.reason, now)
    case 'unknown':
      return afterBad(circuit, UNKNOWN_RUN, answer.reason, now)
  }
}

/** Ignores a time further ahead than payoutd ever sets it: a clock that was set back since wrote it. */
const isOpen = ({ circuitOpenUntil }: Pick<MerchantFunds, 'circuitOpenUntil'>, now: Instant): boolean =>
  circuitOpenUntil !== null && now < circuitOpenUntil && circuitOpenUntil < now + 2 * CIRCUIT_LONGEST_MS

/** The circuit after an answer that accepts no payout; `limit` of them in a row open it. */
function afterBad(circuit: CircuitState, limit: number, reason: string, now: Instant): CircuitState {
  // The answer is to a send from before the circuit opened: it says nothing about the gateway since.
  if (isOpen(circuit, now)) return circuit
  const failures = circuit.consecutiveFailures + 1
  const probing = circuit.circuitOpened > 0
  const circuitReason = `${failures} × ${reason}`
  if (failures < limit && !probing) return { ...circuit, consecutiveFailures: failures, circuitReason }
  const forMs = Math.min(CIRCUIT_LONGEST_MS, CIRCUIT_FIRST_MS * 2 ** circuit.circuitOpened)
  return {
    ...circuit,
    consecutiveFailures: 0,
    warmUp: 0,
    circuitOpened: circuit.circuitOpened + 1,
    circuitOpenUntil: now + forMs,
    circuitReason,
  }
}

const otherFees = (fees: Fees, { amount, answer }: Answered): Fees | null =>
  answer.kind === 'accepted' && answer.fee !== null ? feesAfter(fees, amount, answer.fee) : null

/** What is claimed, with what an accepted payout costs beyond what its claim kept. An implausible fee adds nothing. */
function withFee(
  { claimedTotal }: Pick<MerchantFunds, 'claimedTotal'>,
  { amount, keptFee }: AnsweredClaim,
  fee: Paise | null,
): Paise {
  if (fee === null || fee <= keptFee || oddFee(fee, amount) !== null) return claimedTotal
  return paise(claimedTotal + fee - keptFee)
}

/**
 * So many "later" in a row are a sign that the gateway takes only so many a second. One in between, for a reason of its own, is none.
 */
const LIMIT_MET = 3
/** Applies a second: where the search for the gateway's limit begins, the fewest, and from where on there is none. */
const [RATE_FIRST, RATE_LEAST, RATE_FREE] = [50, 1, 2_000]
/** What a second changes at most: many of its answers are about what left before the last change. */
const [RATE_DOWN, RATE_UP, RATE_EVERY_MS] = [0.7, 1.1, 1_000]

function slower(circuit: CircuitState, now: Instant): CircuitState {
  const { learnedRate, rateLoweredAt, consecutiveFailures } = circuit
  if (consecutiveFailures + 1 < LIMIT_MET || !isDue(rateLoweredAt, now)) return circuit
  const rate = learnedRate === null ? RATE_FIRST : Math.max(RATE_LEAST, learnedRate * RATE_DOWN)
  return { ...circuit, learnedRate: rate, rateLoweredAt: now }
}

function faster(circuit: CircuitState, now: Instant): CircuitState {
  const { learnedRate, rateLoweredAt, rateRaisedAt } = circuit
  if (learnedRate === null || !isDue(rateLoweredAt, now) || !isDue(rateRaisedAt, now)) return circuit
  const rate = learnedRate * RATE_UP
  return { ...circuit, learnedRate: rate > RATE_FREE ? null : rate, rateRaisedAt: now }
}

/** A clock that was set back since wrote a time that is still to come. */
const isDue = (changedAt: Instant | null, now: Instant): boolean =>
  changedAt === null || Math.abs(now - changedAt) >= RATE_EVERY_MS

const warmer = (circuit: CircuitState): CircuitState => ({
  ...calm(circuit),
  refusals: 0,
  warmUp: Math.min(WARM, circuit.warmUp + 1),
})

const calm = (circuit: CircuitState): CircuitState => ({
  ...circuit,
  consecutiveFailures: 0,
  circuitOpened: 0,
  circuitOpenUntil: null,
  circuitReason: null,
})

type Watched = Pick<
  CircuitState,
  'learnedRate' | 'warmUp' | 'consecutiveFailures' | 'circuitOpened' | keyof Fees
>

/**
 * Whether an answer must be written to its merchant's row: if it may change the pace that a claim found, and if it is the first of
 * this process that accepts or refuses after bad ones, which would else count as a row however far apart they are.
 */
export function answersToTell(): (merchantId: string, answered: Answered, found: Watched) => boolean {
  /** Merchants whose latest answer that was written is bad. */
  const bad = new Set<string>()
  return (merchantId, answered, found) => {
    const changes = canChangePace(answered, found)
    const { kind } = answered.answer
    if (kind === 'accepted' || kind === 'duplicate' || kind === 'refused')
      return bad.delete(merchantId) || changes
    if (changes) bad.add(merchantId)
    return changes
  }
}

/** Whether an answer may change the pace that a claim found, so that it must be written to the merchant's row. */
export function canChangePace(answered: Answered, found: Watched): boolean {
  const { kind } = answered.answer
  if (found.warmUp < WARM || found.consecutiveFailures > 0 || found.circuitOpened > 0) return true
  if (found.learnedRate !== null) return true
  if (kind === 'accepted') return otherFees(found, answered) !== null
  return kind !== 'refused'
}
