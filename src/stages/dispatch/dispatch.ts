import type { KeyObject } from 'node:crypto'
import { UNKEPT } from '../../domain/evidence.ts'
import type { ApplyAnswer, BalanceAnswer } from '../../domain/gateway-answers.ts'
import type { Instant } from '../../domain/instant.ts'
import { estimatedFees } from '../../domain/payout/fee.ts'
import type { GatewayPromises } from '../../domain/payout/next-query.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import type { Account } from '../../gateway/dialect/account.ts'
import type { PayoutDetails } from '../../ledger/encrypted-details.ts'
import { fenceForLosses } from '../../ledger/evidence/proven-losses.ts'
import { keepRefused } from '../../ledger/evidence/refused-evidence.ts'
import { ledgerOf } from '../../ledger/ledger.ts'
import type { Counter, Histogram } from '../../platform/metrics.ts'
import { Batchers } from '../../platform/postgres/batchers.ts'
import { type Clock, type Moment, momentAfter, momentOf } from '../../platform/running/clock.ts'
import { pause } from '../../platform/running/lifecycle.ts'
import { quietPause } from '../../platform/running/quiet.ts'
import { SharedSlots } from '../../platform/running/shared-slots.ts'
import { Slots } from '../../platform/running/slots.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { Balances } from './balance.ts'
import type { Claim, ClaimOptions, claim } from './claim.ts'
import type { OpenedDetails } from './claim-candidates.ts'
import { ClaimNews } from './claim-news.ts'
import { type Claimant, ClaimRoom } from './claim-room.ts'
import { answersToTell, type Gate, type PaceLimits } from './merchant-gate.ts'
import { type ApplyOutcome, type RecordDeps, recordAnswers } from './record-answers.ts'
import { RefusedClaims } from './refused-claims.ts'
import { type MerchantPace, merchantsWithWork } from './sql/funds.ts'

/** How to send one merchant's payouts. */
export type Sender = {
  account: Pick<Account, 'accountId' | 'settingsHash'> & { promises: GatewayPromises }
  limits: PaceLimits
  leaseMs: number
  /** The longest that a call may take from its first byte on; less than the lease. */
  sendTimeoutMs: number
  /** Calls `mayStillSend` in the tick that hands the bytes over. Never rejects. */
  apply: (payout: Payout, details: PayoutDetails, mayStillSend: () => boolean) => Promise<ApplyAnswer>
  balance: () => Promise<BalanceAnswer>
}

export type DispatchDeps = RecordDeps & {
  claim: typeof claim
  /** Whether a send that must leave before `sendBefore` still may. */
  maySend: (now: Moment, sendBefore: Moment) => boolean
  senders: ReadonlyMap<string, Sender>
  sealing: SealingKeys
  fingerprintKey: KeyObject
  /** Names this process in leases. */
  owner: string
  /** Applies under way at once in this process, over all merchants. */
  inFlight: number
  clock: Clock
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

/**
 * Claims under way at once in this process, together fewer than its connections by default. A merchant whose claims take nothing
 * claims in vain, apart from the others: there may be hundreds of them, when a top-up was missed.
 */
const MOST_CLAIMS = 3
const MOST_CLAIMS_IN_VAIN = 1
const BUSY_MS = 2
/**
 * How often dispatch looks for merchants with payouts to send, even while others keep it busy. It looks at once when its own process
 * has taken in commands.
 */
const LOOK_EVERY_MS = 40
/** After a look it waits for so many times as long as that took, and LOOK_PAUSE_LONGEST_MS at most. */
const LOOK_PAUSE = 10
const LOOK_PAUSE_LONGEST_MS = 250
/** How long a merchant rests after a claim that takes nothing: longer after each. After a locked row it begins with BUSY_MS. */
const REST_FIRST_MS = 40
const REST_LONGEST_MS = 1_000
/** Why a claim takes nothing although another one soon may: no claim in vain. */
const SOON_OPEN: ReadonlySet<Gate['closed']> = new Set(['locked', 'in-flight', 'rate'])

/**
 * Sends queued payouts: claims small waves, of several merchants at a time, commits the intent, calls apply outside any
 * transaction, and records each answer as it comes. Merchants share nothing that one of them could use up: slots, claims,
 * answers and balances belong to one merchant, or are bounded.
 */
export class Dispatch {
  readonly #deps: DispatchDeps
  readonly #slots: SharedSlots
  readonly #room: ClaimRoom
  readonly #claims: Slots
  readonly #claimsInVain: Slots
  readonly #outcomes: Batchers<ApplyOutcome, undefined>
  readonly #balances: Balances
  /** By merchant: payouts whose answer is not stored yet. */
  readonly #underWay: ReadonlyMap<string, Set<Payout>>
  readonly #overdue = new AbortController()
  readonly #mustTell = answersToTell()
  readonly #news: ClaimNews
  readonly #refusals: RefusedClaims
  readonly #active = new Map<string, DispatchTurn>()
  #lookAt = 0
  #foundAt = 0
  #isToLook = false
  #isEnding = false

  constructor(deps: DispatchDeps) {
    this.#deps = deps
    this.#slots = new SharedSlots(deps.inFlight, deps.senders.keys(), deps.log)
    this.#room = new ClaimRoom(
      this.#slots,
      deps.inFlight,
      (merchantId) => this.#underWayOf(merchantId).size > 0,
    )
    this.#claims = new Slots(MOST_CLAIMS, deps.log)
    this.#claimsInVain = new Slots(MOST_CLAIMS_IN_VAIN, deps.log)
    this.#underWay = new Map([...deps.senders.keys()].map((merchantId) => [merchantId, new Set()]))
    this.#outcomes = new Batchers(
      { size: 500, waitMs: 5, bare, about: ({ payoutId }) => payoutId },
      (outcomes, merchantId) =>
        recordAnswers(outcomes, { ...deps, ledger: ledgerOf(deps.ledger, merchantId) }),
    )
    this.#refusals = new RefusedClaims(deps)
    this.#news = new ClaimNews(deps)
    this.#balances = new Balances(deps.ledger.db, deps.clock, deps.log)
  }

  /** One turn of the loop: begins a wave of each merchant that has work and room. Returns ms to wait before the next. */
  async turn(): Promise<number> {
    const { clock, ledger, senders } = this.#deps
    if (clock.monotonic() >= this.#lookAt) {
      this.#isToLook = false
      const began = clock.monotonic()
      const found = await ledger.db.run(merchantsWithWork, {})
      const now = clock.monotonic()
      if (found.length > 0) this.#foundAt = now
      const oftenMs = Math.min(LOOK_PAUSE_LONGEST_MS, Math.max(LOOK_EVERY_MS, LOOK_PAUSE * (now - began)))
      const everyMs = quietPause(now - this.#foundAt, oftenMs)
      this.#lookAt = this.#isToLook ? now : now + everyMs
      this.#look(found.filter(({ merchantId }) => senders.has(merchantId)))
    }
    this.#room.divide(this.#active, clock.monotonic())
    for (const [merchantId, turn] of this.#active) {
      if (turn.claiming || clock.monotonic() < turn.restUntil) continue
      const atMost = this.#room.of(merchantId, turn)
      if (atMost === 0) continue
      this.#room.begin(turn, atMost, clock.monotonic())
      this.#beginWave(merchantId, turn)
    }
    const next = Math.min(
      this.#lookAt,
      ...[...this.#active.values()].map(({ claiming, restUntil }) => (claiming ? 0 : restUntil)),
    )
    return Math.max(BUSY_MS, next - clock.monotonic())
  }

  /** Makes the next turn look for merchants with payouts to send. */
  lookNow(): void {
    this.#isToLook = true
    this.#lookAt = 0
  }

  /** Drops merchants with nothing left to send. Ends the rest of one whose row has changed, or that had nothing left before. */
  #look(found: readonly { merchantId: string; rowVersion: string }[]): void {
    const waiting = new Set(found.map(({ merchantId }) => merchantId))
    for (const [merchantId, { claiming }] of this.#active)
      if (!claiming && !waiting.has(merchantId)) this.#active.delete(merchantId)
    for (const { merchantId, rowVersion } of found) {
      const turn = this.#active.get(merchantId)
      if (turn && (turn.isEmpty || turn.rowVersion !== rowVersion)) this.#wake(merchantId)
      this.#active.set(merchantId, Object.assign(turn ?? newTurn(), { rowVersion }))
    }
  }

  #wake(merchantId: string): void {
    const turn = this.#active.get(merchantId)
    if (turn && turn.failures === 0) turn.restUntil = 0
  }

  /**
   * Takes the slots once the claim begins, and before it knows how many payouts there are: hundreds of claims may wait for each
   * other, and another claim may be under way. Then it is the others' turn first.
   */
  #beginWave(merchantId: string, turn: DispatchTurn): void {
    turn.claiming = true
    const claims = turn.isInVain ? this.#claimsInVain : this.#claims
    claims.run(async () => {
      const atMost = this.#isEnding ? 0 : this.#room.of(merchantId, turn)
      try {
        if (atMost === 0) return
        this.#active.delete(merchantId)
        this.#active.set(merchantId, turn)
        await this.#wave(merchantId, turn, atMost)
      } finally {
        turn.claiming = false
      }
    })
  }

  /** Never rejects. A merchant whose claim fails rests for a while, and no other does. */
  async #wave(merchantId: string, turn: DispatchTurn, room: number): Promise<void> {
    const { clock, log, ledger, queryPolicies } = this.#deps
    this.#slots.take(merchantId, room)
    const terms = this.#refusals.termsOf(merchantId, room)
    let claimed: Claim
    const claimedAt = momentOf(clock)
    try {
      claimed = await this.#claim(merchantId, terms)
      if (claimed.gate.closed === 'set-back')
        await fenceForLosses({ ledger, log, merchantIds: [...queryPolicies.keys()] })
      turn.failures = 0
    } catch (error) {
      if (await this.#refusals.failed(merchantId, error)) return
      const retryInMs = Math.min(5_000, 100 * 2 ** turn.failures)
      if (turn.failures++ === 0) log.error({ err: error, merchantId, retryInMs }, 'claim failed, retrying')
      turn.restUntil = clock.monotonic() + retryInMs
      return
    } finally {
      this.#slots.giveBack(merchantId, room)
    }
    const taken = this.#sendWave(merchantId, claimed, claimedAt)
    this.#refusals.passed(merchantId, taken)
    turn.takes = taken > 0
    turn.takenNothing = taken > 0 ? 0 : turn.takenNothing + 1
    turn.isEmpty = isEmpty(claimed, taken, terms)
    turn.isInVain = taken === 0 && !turn.isEmpty && !SOON_OPEN.has(claimed.gate.closed)
    if (turn.isEmpty) turn.restUntil = clock.monotonic() + REST_LONGEST_MS
    if (taken > 0 || turn.isEmpty) return
    const firstMs = claimed.gate.closed === 'locked' ? BUSY_MS : REST_FIRST_MS
    const restMs = Math.min(REST_LONGEST_MS, firstMs * 2 ** (turn.takenNothing - 1))
    turn.restUntil = clock.monotonic() + restMs
  }

  /** Waits for every call under way and until its answer is stored; `overdue` ends the storing. */
  async drain(overdue: AbortSignal): Promise<void> {
    overdue.addEventListener('abort', () => this.#overdue.abort(), { once: true })
    // Hundreds of claims may still wait for their turn.
    this.#isEnding = true
    await this.#claims.drain()
    await this.#claimsInVain.drain()
    await this.#slots.drain()
    await this.#balances.drain()
    await this.#outcomes.drain()
  }

  /** Logs, one line each, the payouts that this process leaves to their leases if it ends now. */
  logAbandoned(): void {
    for (const payout of [...this.#underWay.values()].flatMap((payouts) => [...payouts])) {
      const { merchantId, payoutId, orderNo, attempt, dueAt } = payout
      this.#deps.log.warn(
        { merchantId, payoutId, mchOrderNo: orderNo, attempt, leaseUntil: dueAt && new Date(dueAt) },
        'apply call abandoned: unless a callback comes first, the payout becomes unknown when its lease ends, ' +
          'and payoutd queries it',
      )
    }
  }

  #claim(merchantId: string, which: Pick<ClaimOptions, 'atMost' | 'among'>): Promise<Claim> {
    const { claim, ledger, owner, sealing, fingerprintKey, senders } = this.#deps
    const { leaseMs, limits, account } = senders.get(merchantId) as Sender
    const terms = { owner, leaseMs, limits, sealing, fingerprintKey, account }
    return claim(ledger, { merchantId, ...which, ...terms })
  }

  /** Returns how many payouts are no longer queued. */
  #sendWave(merchantId: string, claimed: Claim, claimedAt: Moment): number {
    const { wave, aside, gate, funds, shortOf } = claimed
    const sender = this.#deps.senders.get(merchantId) as Sender
    if (gate.askBalance || shortOf) this.#balances.ask(merchantId, sender.balance)
    this.#news.tell(merchantId, claimed)
    const sendBefore = momentAfter(claimedAt, sender.leaseMs - sender.sendTimeoutMs)
    if (funds) for (const each of wave) this.#send(each, sender, sendBefore, funds)
    return wave.length + aside.length
  }

  /** See ClaimNews. */
  get outdated(): ReadonlySet<string> {
    return this.#news.outdated
  }

  #send(claimed: OpenedDetails, sender: Sender, sendBefore: Moment, found: MerchantPace): void {
    const { merchantId, payoutId, attempt, dueAt, amount } = claimed.payout
    const made = { attempt, owner: this.#deps.owner, leaseUntil: dueAt as Instant }
    const keptFee = estimatedFees(found, amount)
    const underWay = this.#underWayOf(merchantId).add(claimed.payout)
    this.#slots.run(merchantId, async () => {
      try {
        const answer = await this.#apply(claimed, sender, sendBefore)
        await this.#keep({
          merchantId,
          payoutId,
          ...made,
          amount,
          keptFee,
          answer,
          tell: this.#mustTell(merchantId, { amount, answer }, found),
        })
      } finally {
        if (!this.#overdue.signal.aborted) underWay.delete(claimed.payout)
        if (!this.#active.get(merchantId)?.isEmpty) this.#wake(merchantId)
      }
    })
  }

  #underWayOf(merchantId: string): Set<Payout> {
    return this.#underWay.get(merchantId) as Set<Payout>
  }

  async #apply({ payout, details }: OpenedDetails, sender: Sender, sendBefore: Moment): Promise<ApplyAnswer> {
    const { clock, maySend, answered, took } = this.#deps
    const began = clock.monotonic()
    const answer = await sender.apply(payout, details, () => maySend(momentOf(clock), sendBefore))
    took.observe((clock.monotonic() - began) / 1000)
    answered.inc({ merchant: payout.merchantId, answer: answer.kind })
    return answer
  }

  /**
   * Stores an answer, and tries for as long as the database is away: there may be no other answer. Once the lease has ended,
   * the outcomes role takes over the payout, and the answer still counts as evidence. If the database refuses the answer
   * itself, stores an anomaly.
   */
  async #keep(outcome: ApplyOutcome): Promise<void> {
    const { merchantId, payoutId } = outcome
    const about = { merchantId, payoutId, orderNo: null, source: 'APPLY' } as const
    for (let failures = 0; !this.#overdue.signal.aborted; failures++) {
      try {
        await this.#outcomes.add(outcome.merchantId, outcome)
        return
      } catch (error) {
        if ((await keepRefused(error, about, this.#deps)) !== 'database') {
          this.#deps.log.error(
            { err: error, merchantId, payoutId },
            'the database refuses this answer: the payout becomes unknown when its lease ends, and payoutd queries it',
          )
          return
        }
        this.#deps.log.error({ err: error, merchantId, payoutId }, 'answer not stored, retrying')
        await pause(Math.min(5_000, 100 * 2 ** failures), this.#overdue.signal)
      }
    }
  }
}

/** The state of dispatch for a merchant with payouts to send. */
type DispatchTurn = Claimant & {
  /** Claims in a row that failed in the database. */
  failures: number
  /** Claims in a row that took nothing: the gate was closed, the balance was short, or another process had the payouts. */
  takenNothing: number
  /** Its last claim took nothing although payouts wait, and the next one will hardly take more. */
  isInVain: boolean
  /** Its last claim took less than it could: nothing waits until a look finds some. */
  isEmpty: boolean
  restUntil: number
  rowVersion: string
}

const newTurn = () => ({
  ...{ claiming: false, failures: 0, takenNothing: 0, takes: true, singleAt: null },
  ...{ isInVain: false, isEmpty: false, restUntil: 0 },
})

const isEmpty = (
  { gate, shortOf }: Claim,
  taken: number,
  { atMost, among }: Pick<ClaimOptions, 'atMost' | 'among'>,
): boolean => gate.closed === null && !shortOf && !among && taken < Math.min(gate.room, atMost)

/** The part of an answer that decides, without the part that is only stored for people to read. */
function bare({ answer, ...outcome }: ApplyOutcome): ApplyOutcome {
  return {
    ...outcome,
    answer: { ...answer, ...('message' in answer ? { message: '' } : {}), exchange: UNKEPT },
  }
}
