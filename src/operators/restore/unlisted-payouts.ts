import type { PayoutKey } from '../../domain/identifiers.ts'
import type { PublishedMessage } from '../../domain/restore/published-story.ts'
import { keyOf, type Ledger } from '../../ledger/ledger.ts'
import { storePublished } from '../../ledger/published-messages.ts'
import { readBack } from '../../ledger/read-back.ts'
import { lockForCancels } from '../../ledger/sql/cancels.ts'
import { unlisted } from './sql/read-back-published.ts'

type UnlistedMessage = PayoutKey & PublishedMessage

const PAGE = 2_000

/**
 * What was published of payouts that are on no list of the recovery, as the ledger lacks them: it is kept, so that intake
 * does not take them in as new should their commands come later. Compared some at a time, so that no more is held.
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

  /** Once everything was read: those that were taken in since the list was made. What was published of them is kept, too. */
  async late(): Promise<PayoutKey[]> {
    await this.#keep()
    return [...this.#late.values()]
  }

  async #keep(): Promise<void> {
    const messages = this.#unseen
    this.#unseen = []
    const { db } = this.#ledger
    const keys = [...new Map(messages.map((message) => [keyOf(message), message])).values()]
    const wanted = {
      merchantIds: keys.map(({ merchantId }) => merchantId),
      payoutIds: keys.map(({ payoutId }) => payoutId),
    }
    if (keys.length === 0 || (await db.run(unlisted, wanted)).length === 0) return
    const merchantIds = [...new Set(wanted.merchantIds)].sort()
    await readBack(db, async (tx) => {
      await tx.run(lockForCancels, { merchantIds, alone: merchantIds.map(() => true) })
      const places = await tx.run(unlisted, wanted)
      const lacking = new Set(places.map(({ place }) => keyOf(keys[place - 1] as UnlistedMessage)))
      await storePublished(
        tx,
        messages.filter((message) => lacking.has(keyOf(message))),
      )
      for (const { place, late } of places) {
        const { merchantId, payoutId } = keys[place - 1] as UnlistedMessage
        if (late) this.#late.set(keyOf({ merchantId, payoutId }), { merchantId, payoutId })
      }
    })
  }
}
