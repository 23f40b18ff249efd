import type { PayoutKey } from '../../domain/identifiers.ts'
import type { PublishedMessage } from '../../domain/recovery/published-story.ts'
import { keyOf, type Ledger } from '../../ledger/ledger.ts'
import { storePublished } from '../../ledger/published-messages.ts'
import { recalling } from '../../ledger/read-back.ts'
import { lockForCancels } from '../../ledger/sql/cancels.ts'
import { unlisted } from './sql/read-back-published.ts'

type UnlistedMessage = PayoutKey & PublishedMessage

const PAGE = 2_000

/**
 * Keeps what was published of payouts that are on no list of the recovery, because the ledger lacks them, so that intake does not
 * store them as new if their commands arrive later. Compares a page at a time, to bound its memory.
 */
export class UnlistedPayouts {
  readonly #ledger: Ledger
  #unseen: UnlistedMessage[] = []
  readonly #late = new Map<string, PayoutKey>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async note(message: UnlistedMessage): Promise<void> {
    this.#unseen.push(message)
    if (this.#unseen.length >= PAGE) await this.#keep()
  }

  /**
   * Call this once everything was read. Returns the payouts that intake stored after the list was made, and keeps what was
   * published of them, too.
   */
  async late(): Promise<PayoutKey[]> {
    await this.#keep()
    return [...this.#late.values()]
  }

  async #keep(): Promise<void> {
    const messages = this.#unseen
    this.#unseen = []
    const { db } = this.#ledger
    const payouts = [...new Map(messages.map((message) => [keyOf(message), message])).values()]
    if (payouts.length === 0 || (await db.run(unlisted, { payouts })).length === 0) return
    await recalling(db, async (tx) => {
      await tx.run(lockForCancels, { merchantIds: payouts.map(({ merchantId }) => merchantId) })
      const found = await tx.run(unlisted, { payouts })
      const lacking = new Set(found.map(keyOf))
      await storePublished(
        tx,
        messages.filter((message) => lacking.has(keyOf(message))),
      )
      for (const { late, ...key } of found) if (late) this.#late.set(keyOf(key), key)
    })
  }
}
