import type { BalanceAnswer } from '../payout/answers.ts'
import type { Clock } from '../platform/clock.ts'
import type { Logger } from '../platform/log.ts'
import type { Database } from '../platform/postgres.ts'
import { beforeAsking, keepBalance } from './sql/purse.ts'

/** A process asks for one merchant's balance at most this often. */
const EVERY_MS = 500

/** Keeps the balance snapshots that all processes share. */
export class Balances {
  readonly #db: Database
  readonly #clock: Clock
  readonly #log: Logger
  readonly #asked = new Map<string, number>()

  constructor(db: Database, clock: Clock, log: Logger) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  /** Whether `ask` would do anything now. */
  mayAsk(merchantId: string): boolean {
    return this.#clock.monotonic() >= (this.#asked.get(merchantId) ?? 0) + EVERY_MS
  }

  /** Asks the gateway and keeps the answer. Never rejects: without an answer the old snapshot stands. */
  async ask(merchantId: string, query: () => Promise<BalanceAnswer>): Promise<void> {
    this.#asked.set(merchantId, this.#clock.monotonic())
    try {
      const [mark] = await this.#db.run(beforeAsking, { merchantId })
      const answer = await query()
      if (answer.kind === 'unknown') {
        this.#log.warn(
          { merchantId, reason: answer.reason },
          'the gateway did not tell the balance, will ask again',
        )
        return
      }
      if (mark)
        await this.#db.write('keep balance', keepBalance, {
          merchantId,
          available: answer.availableAmount,
          ...mark,
        })
    } catch (error) {
      this.#log.error({ err: error, merchantId }, 'balance not stored, will ask again')
    }
  }
}
