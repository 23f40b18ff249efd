import { json } from '../ledger/json.ts'
import { keyOf, type Ledger, type PayoutKey, storeDecisions } from '../ledger/ledger.ts'
import { READ_BACK } from '../ledger/read-back.ts'
import { tellHistory } from '../ledger/sql/store.ts'
import { otherEnd } from '../payout/other-end.ts'
import type { Payout } from '../payout/payout.ts'
import { laterEnd, type PublishedEnd } from '../payout/published.ts'
import { publishedAs } from '../payout/recall.ts'
import type { Transaction } from '../platform/postgres.ts'
import { knowsOf, withOtherEnd } from './sql/lost.ts'

/** `highest`: the version above which nothing was published of it. */
type Ended = PayoutKey & { end: PublishedEnd; highest: number }

const PAGE = 1_000

/**
 * The published ends of payouts that have ended in the ledger, which may be another end: it lost the published one, and then
 * the gateway, a person or the clock brought another. They are compared some at a time, so that no more is held than what differs.
 */
export class OtherEnds {
  readonly #ledger: Ledger
  readonly #unseen = new Map<string, Ended>()
  readonly #differing = new Map<string, Ended>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** `end`: null of what was published of it besides. */
  async note({ merchantId, payoutId }: PayoutKey, version: number, end: PublishedEnd | null): Promise<void> {
    const key = keyOf({ merchantId, payoutId })
    const known = this.#differing.get(key) ?? this.#unseen.get(key)
    if (known) {
      known.highest = Math.max(known.highest, version)
      if (end) known.end = laterEnd(known.end, end)
    } else if (end) this.#unseen.set(key, { merchantId, payoutId, end, highest: version })
    if (this.#unseen.size >= PAGE) await this.#compare()
  }

  /** Once everything was read: those of which another end was published. */
  async differing(): Promise<Ended[]> {
    await this.#compare()
    return [...this.#differing.values()]
  }

  async #compare(): Promise<void> {
    const ended = [...this.#unseen.values()]
    this.#unseen.clear()
    if (ended.length === 0) return
    const places = await this.#ledger.db.run(withOtherEnd, {
      merchantIds: ended.map(({ merchantId }) => merchantId),
      payoutIds: ended.map(({ payoutId }) => payoutId),
      states: ended.map(({ end }) => end.status),
      utrs: ended.map(({ end }) => end.utr),
    })
    for (const { place } of places) {
      const each = ended[place - 1] as Ended
      this.#differing.set(keyOf(each), each)
    }
  }
}

/** Does to a locked payout that has ended what the end does that was published of it. */
export async function settleOtherEnd(
  tx: Transaction,
  payout: Payout,
  { end, highest }: Pick<Ended, 'end' | 'highest'>,
  ledger: Ledger,
): Promise<void> {
  const decision = otherEnd(payout, end, highest)
  if (!decision) return
  const { merchantId, payoutId } = payout
  const { version, status, reason, evidence } = end
  // What the ledger has in its own story was followed by a person's decision; under this version stands its own end.
  const isOwn = version === payout.version
  const known = {
    merchantId,
    payoutId,
    version: isOwn ? null : version,
    state: status,
    published: publishedAs(end),
  }
  if ((await tx.run(knowsOf, known)).length > 0) return
  if (version > payout.version) {
    await tx.run(tellHistory, {
      ...{
        toldMerchantIds: [merchantId],
        toldPayoutIds: [payoutId],
        toldVersions: [version],
        fromStates: [payout.state],
      },
      ...{ toStates: [status], toldReasons: [reason], sources: [evidence], exchanges: [json(READ_BACK)] },
    })
  }
  await storeDecisions(tx, ledger, [decision])
}
