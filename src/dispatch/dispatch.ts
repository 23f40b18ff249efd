import type { PayoutDetails } from '../ledger/details.ts'
import type { ApplyAnswer, BalanceAnswer } from '../payout/answers.ts'
import type { Payout } from '../payout/payout.ts'
import { Batcher } from '../platform/batcher.ts'
import type { Clock } from '../platform/clock.ts'
import { pause } from '../platform/lifecycle.ts'
import type { Counter, Histogram } from '../platform/metrics.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { Slots } from '../platform/slots.ts'
import { Balances } from './balance.ts'
import type { claim } from './claim.ts'
import { isWorthTelling, type PaceLimits } from './pace.ts'
import { type Outcome, type RecordDeps, record } from './record.ts'
import type { Opened, Sealed } from './sealed.ts'
import { merchantsWithWork, type PurseRow } from './sql/purse.ts'

/** How one merchant's payouts are sent. */
export type Sender = {
  limits: PaceLimits
  leaseMs: number
  /** The longest that a call may take from its first byte on; less than the lease. */
  sendTimeoutMs: number
  /** `mayStillSend` is asked in the tick that hands the bytes over. Never rejects. */
  apply: (payout: Payout, details: PayoutDetails, mayStillSend: () => boolean) => Promise<ApplyAnswer>
  balance: () => Promise<BalanceAnswer>
}

export type DispatchDeps = RecordDeps & {
  claim: typeof claim
  /** Whether a send that must leave before `sendBefore` still may (monotonic ms). */
  maySend: (now: number, sendBefore: number) => boolean
  senders: ReadonlyMap<string, Sender>
  sealing: SealingKeys
  /** Names this process in leases. */
  owner: string
  /** Applies under way at once in this process, over all merchants. */
  inFlight: number
  clock: Clock
  answered: Counter<'merchant' | 'answer'>
  took: Histogram
}

/** A wave is marked when this many slots are free, so that few are in doubt after a crash. */
const REFILL = 16
const LARGEST_WAVE = 64
const BUSY_MS = 2
const IDLE_MS = 40
const SHORT_TOLD_EVERY_MS = 60_000

/**
 * Sends what is queued: claims small waves, merchant after merchant, commits the intent, calls apply
 * outside any transaction, and records each answer as it comes.
 */
export class Dispatch {
  readonly #deps: DispatchDeps
  readonly #slots: Slots
  readonly #outcomes: Batcher<Outcome, undefined>
  readonly #balances: Balances
  readonly #questions = new Slots(16)
  /** By merchant: payouts whose answer is not stored yet. */
  readonly #underWay: ReadonlyMap<string, Set<Payout>>
  readonly #toldShort = new Map<string, number>()
  #active: string[] = []

  constructor(deps: DispatchDeps) {
    this.#deps = deps
    this.#slots = new Slots(deps.inFlight)
    this.#underWay = new Map([...deps.senders.keys()].map((merchantId) => [merchantId, new Set()]))
    this.#outcomes = new Batcher({ size: 500, waitMs: 5, lanes: 2 }, (outcomes) => record(outcomes, deps))
    this.#balances = new Balances(deps.ledger.db, deps.clock, deps.log)
  }

  /** One turn of the loop: one wave of each merchant that has work. Returns ms to wait before the next. */
  async turn(): Promise<number> {
    if (this.#active.length === 0) {
      const found = await this.#deps.ledger.db.run(merchantsWithWork, {})
      this.#active = found.map(({ merchantId }) => merchantId).filter((id) => this.#deps.senders.has(id))
      if (this.#active.length === 0) return IDLE_MS
    }
    let left = 0
    const share = Math.ceil(this.#deps.inFlight / this.#active.length)
    for (const merchantId of [...this.#active]) {
      const room = Math.min(this.#slots.free, share - this.#underWayOf(merchantId).size, LARGEST_WAVE)
      if (room < Math.min(REFILL, share)) continue
      const taken = await this.#claim(merchantId, room)
      if (taken < room) this.#active = this.#active.filter((id) => id !== merchantId)
      left += taken
    }
    if (this.#active.length > 0) return left > 0 ? 0 : BUSY_MS
    return left > 0 ? BUSY_MS : IDLE_MS
  }

  /** Waits for every call under way and for its answer to be stored. */
  async drain(): Promise<void> {
    await this.#slots.drain()
    await this.#questions.drain()
    await this.#outcomes.drain()
  }

  /** Tells in the log, one line each, the payouts that a process which ends now leaves to their leases. */
  tellAbandoned(): void {
    for (const payout of [...this.#underWay.values()].flatMap((payouts) => [...payouts])) {
      const { merchantId, payoutId, orderNo, attempt, dueAt } = payout
      this.#deps.log.warn(
        { merchantId, payoutId, mchOrderNo: orderNo, attempt, leaseUntil: dueAt && new Date(dueAt) },
        'apply call abandoned: unless a callback comes first, the payout becomes unknown when its lease ends, ' +
          'and the gateway is asked about it',
      )
    }
  }

  /** Returns how many payouts are no longer queued. */
  async #claim(merchantId: string, atMost: number): Promise<number> {
    const { claim, ledger, owner, clock, sealing } = this.#deps
    const sender = this.#deps.senders.get(merchantId) as Sender
    const claimedAt = clock.monotonic()
    const { leaseMs, limits } = sender
    const options = { merchantId, atMost, owner, leaseMs, limits, sealing }
    const { wave, sealed, gate, purse, shortOf } = await claim(ledger, options)
    if ((gate.askBalance || shortOf) && this.#balances.mayAsk(merchantId)) {
      this.#questions.run(() => this.#balances.ask(merchantId, sender.balance))
    }
    if (shortOf) this.#tellShort(merchantId, shortOf)
    for (const each of sealed) this.#tellSealed(each)
    const sendBefore = claimedAt + leaseMs - sender.sendTimeoutMs
    if (purse) for (const each of wave) this.#send(each, sender, sendBefore, purse)
    return wave.length + sealed.length
  }

  #tellSealed({ payout: { merchantId, payoutId }, keyId }: Sealed): void {
    this.#deps.log.error(
      { merchantId, payoutId, keyId },
      'bank details do not open, so the payout is held, unsent: add the key that sealed it to ENCRYPTION_KEYS, ' +
        'and start payoutd again',
    )
  }

  /** Once a minute: every claim finds it anew. */
  #tellShort(merchantId: string, { payoutId }: Payout): void {
    const { clock, log } = this.#deps
    const now = clock.monotonic()
    if (now < (this.#toldShort.get(merchantId) ?? 0)) return
    this.#toldShort.set(merchantId, now + SHORT_TOLD_EVERY_MS)
    log.warn({ merchantId, payoutId }, 'the balance does not cover the next payout: it waits')
  }

  #send(claimed: Opened, sender: Sender, sendBefore: number, found: PurseRow): void {
    const { merchantId, payoutId, attempt } = claimed.payout
    const underWay = this.#underWayOf(merchantId).add(claimed.payout)
    this.#slots.run(async () => {
      const answer = await this.#apply(claimed, sender, sendBefore)
      await this.#keep({ merchantId, payoutId, attempt, answer, tell: isWorthTelling(answer, found) })
      underWay.delete(claimed.payout)
    })
  }

  #underWayOf(merchantId: string): Set<Payout> {
    return this.#underWay.get(merchantId) as Set<Payout>
  }

  async #apply({ payout, details }: Opened, sender: Sender, sendBefore: number): Promise<ApplyAnswer> {
    const { clock, maySend, answered, took } = this.#deps
    const began = clock.monotonic()
    const answer = await sender.apply(payout, details, () => maySend(clock.monotonic(), sendBefore))
    took.observe((clock.monotonic() - began) / 1000)
    answered.inc({ merchant: payout.merchantId, answer: answer.kind })
    return answer
  }

  /**
   * Stores an answer, for as long as it takes: it may be the only one there will be. Once the lease has
   * ended others look after the payout, and the answer still counts as evidence.
   */
  async #keep(outcome: Outcome): Promise<void> {
    for (let failures = 0; ; failures++) {
      try {
        await this.#outcomes.add(outcome)
        return
      } catch (error) {
        const { merchantId, payoutId } = outcome
        this.#deps.log.error({ err: error, merchantId, payoutId }, 'answer not stored, trying again')
        await pause(Math.min(5_000, 100 * 2 ** failures), NEVER)
      }
    }
  }
}

const NEVER = new AbortController().signal
