import type { QueryAnswer } from '../payout/answers.ts'
import type { Database } from '../platform/postgres.ts'
import { isControlled, keepControl, someKnownOrder } from './sql/control.ts'

/**
 * The positive control: that the present settings (address, merchant, dialect, path, key) have found an
 * order known to exist. Without it a "not found" may only mean that we ask in the wrong place.
 */
export class PositiveControl {
  readonly #db: Database
  readonly #proven = new Set<string>()

  constructor(db: Database) {
    this.#db = db
  }

  /** To be told of every order that a query found. */
  async found(merchantId: string, settingsHash: string): Promise<void> {
    if (this.#proven.has(settingsHash)) return
    await this.#db.write('keep control', keepControl, { merchantId, settingsHash })
    this.#proven.add(settingsHash)
  }

  /** Whether there is one; when not, asks the gateway about an order that must exist. */
  async holds(
    merchantId: string,
    settingsHash: string,
    query: (mchOrderNo: string) => Promise<QueryAnswer>,
  ): Promise<boolean> {
    if (this.#proven.has(settingsHash)) return true
    const [stored] = await this.#db.run(isControlled, { merchantId, settingsHash })
    if (stored?.controlled) {
      this.#proven.add(settingsHash)
      return true
    }
    const [known] = await this.#db.run(someKnownOrder, { merchantId })
    if (!known) return false
    const answer = await query(known.orderNo)
    if (answer.kind !== 'found') return false
    await this.found(merchantId, settingsHash)
    return true
  }
}
