import { json } from '../ledger/json.ts'
import { keyOf, type Ledger, type PayoutKey, storeDecisions, storePayouts } from '../ledger/ledger.ts'
import { READ_BACK } from '../ledger/read-back.ts'
import { tellHistory } from '../ledger/sql/store.ts'
import { otherEnd } from '../payout/other-end.ts'
import type { Payout } from '../payout/payout.ts'
import { laterEnd, type PublishedEnd } from '../payout/published.ts'
import { publishedAs } from '../payout/recall.ts'
import type { Transaction } from '../platform/postgres.ts'
import { knowsOf, withOtherEnd } from './sql/lost.ts'

/** `end`: null if none was published. `highest`: the version above which nothing was. */
type Ended = PayoutKey & { end: PublishedEnd | null; highest: number }

const PAGE = 1_000

/**
 * What was published of payouts that have ended in the ledger, which may be in another end, or below a version that was
 * published: it lost that, and then the gateway, a person or the clock brought another. They are compared some at a time, so that no more is held than what differs.
 */
export class OtherEnds {
  readonly #ledger: Ledger
  readonly #unseen = new Map<string, Ended>()
  readonly #differing = new Map<string, Ended>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** `end`: null of what is none. */
  async note({ merchantId, payoutId }: PayoutKey, version: number, end: PublishedEnd | null): Promise<void> {
    const key = keyOf({ merchantId, payoutId })
    const known = this.#differing.get(key) ?? this.#unseen.get(key)
    if (known) {
      known.highest = Math.max(known.highest, version)
      if (end) known.end = laterEnd(known.end, end)
    } else this.#unseen.set(key, { merchantId, payoutId, end, highest: version })
    if (this.#unseen.size >= PAGE) await this.#compare()
  }

  /** Once everything was read: those of which another end was published, or a version above theirs. */
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
      states: ended.map(({ end }) => end?.status ?? null),
      utrs: ended.map(({ end }) => end?.utr ?? null),
      versions: ended.map(({ highest }) => highest),
    })
    for (const { place } of places) {
      const each = ended[place - 1] as Ended
      this.#differing.set(keyOf(each), each)
    }
  }
}

/**
 * Does to a locked payout that has ended what the end does that was published of it. Versions go on above all that were
 * published: whoever drops what has an event id that is known would never hear of a return of the money.
 */
export async function settleOtherEnd(
  tx: Transaction,
  payout: Payout,
  { end, highest }: Pick<Ended, 'end' | 'highest'>,
  ledger: Ledger,
): Promise<void> {
  const decision = end && otherEnd(payout, end, highest)
  if (end && decision && (await isKnown(tx, payout, end))) return
  if (end && end.version > payout.version) {
    const { version, status, reason, evidence } = end
    await tx.run(tellHistory, {
      ...{ toldMerchantIds: [payout.merchantId], toldPayoutIds: [payout.payoutId] },
      ...{ toldVersions: [version], fromStates: [payout.state], toStates: [status] },
      ...{ toldReasons: [reason], sources: [evidence], exchanges: [json(READ_BACK)] },
    })
  }
  const isMoved = decision !== null && 'change' in decision
  if (highest > payout.version && !isMoved) await storePayouts(tx, [{ ...payout, version: highest }])
  if (decision) await storeDecisions(tx, ledger, [decision])
}

/** What the ledger has in its own story was followed by a person's decision. */
async function isKnown(tx: Transaction, payout: Payout, end: PublishedEnd): Promise<boolean> {
  const { merchantId, payoutId } = payout
  // Under this version stands its own end.
  const version = end.version === payout.version ? null : end.version
  const known = { merchantId, payoutId, version, state: end.status, published: publishedAs(end) }
  return (await tx.run(knowsOf, known)).length > 0
}
