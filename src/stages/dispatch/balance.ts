import type { BalanceAnswer } from '../../domain/gateway-answers.ts'
import type { Paise } from '../../domain/money.ts'
import type { Logger } from '../../platform/log.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { shareOf } from '../../platform/postgres/shares.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { balanceWatermark, saveBalance } from './sql/funds.ts'

/** A process asks for one merchant's balance at most this often, and half as often after each answer that changes nothing. */
const EVERY_MS = 500
const SELDOM_MS = 5_000

/** Keeps the balance snapshots that all processes share. */
export class Balances {
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Logger
  readonly #asked = new Map<string, number>()
  /** By merchant: its last balance, and how long the next question waits. */
  readonly #last = new Map<string, { available: Paise | null; everyMs: number }>()
  /** Queries without an answer yet: one per merchant, so that a gateway that hangs holds up no other. */
  readonly #asking = new Map<string, Promise<void>>()

  constructor(db: Database, clock: Clock, log: Logger) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  /**
   * Asks the gateway and stores the answer, unless a query is under way or was made just now. Never rejects: without an
   * answer the old snapshot stays.
   */
  ask(merchantId: string, query: () => Promise<BalanceAnswer>): void {
    const now = this.#clock.monotonic()
    const everyMs = this.#last.get(merchantId)?.everyMs ?? EVERY_MS
    if (this.#asking.has(merchantId) || now < (this.#asked.get(merchantId) ?? -everyMs) + everyMs) return
    this.#asked.set(merchantId, now)
    const asking = this.#ask(merchantId, query).finally(() => this.#asking.delete(merchantId))
    this.#asking.set(merchantId, asking)
  }

  async drain(): Promise<void> {
    await Promise.all(this.#asking.values())
  }

  async #ask(merchantId: string, query: () => Promise<BalanceAnswer>): Promise<void> {
    try {
      const [mark] = await this.#db.run(balanceWatermark, { merchantId })
      const answer = await query()
      const available = answer.kind === 'unknown' ? null : answer.availableAmount
      const last = this.#last.get(merchantId)
      this.#pace(merchantId, available)
      if (answer.kind === 'unknown') {
        if (last?.available !== null)
          this.#log.warn(
            { merchantId, reason: answer.reason },
            'the gateway did not return the balance, will query it again',
          )
        return
      }
      if (last?.available === null) this.#log.info({ merchantId }, 'the gateway returns the balance again')
      if (mark)
        await shareOf(this.#db, merchantId).write('keep balance', saveBalance, {
          merchantId,
          available: answer.availableAmount,
          ...mark,
        })
    } catch (error) {
      this.#log.error({ err: error, merchantId }, 'balance not stored, will query it again')
    }
  }

  /**
   * A balance that stays short, or away, would otherwise let its merchant ask and claim for nothing, at the cost of all others.
   * Null: the gateway did not return it.
   */
  #pace(merchantId: string, available: Paise | null): void {
    const last = this.#last.get(merchantId)
    const isSame = last !== undefined && last.available === available
    const everyMs = isSame ? Math.min(SELDOM_MS, 2 * last.everyMs) : EVERY_MS
    this.#last.set(merchantId, { available, everyMs })
  }
}
