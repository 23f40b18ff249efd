import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { otherEnds, sentSince } from '../../domain/recovery/published-otherwise.ts'
import {
  addPublished,
  lackedEnds,
  nothingPublished,
  type Published,
  type PublishedMessage,
  submitsAmong,
  transitionsOf,
} from '../../domain/recovery/published-story.ts'
import { lackedBy, standsAt } from '../../domain/recovery/read-back.ts'
import { keyOf, type Ledger } from '../../ledger/ledger.ts'
import { storeRecalled } from '../../ledger/published-messages.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { lackedOf, ownStory, passedBy } from './lacking-transitions.ts'

type EndedPayout = PayoutKey & { published: Published }

const PAGE = 1_000

/**
 * Collects what was published of payouts that have ended in the ledger. The published end may be another one: the ledger lost it,
 * and then the gateway, a person or the clock brought a new end. Compares a page at a time, so that it holds only what differs.
 */
export class OtherEnds {
  readonly #ledger: Ledger
  readonly #unseen = new Map<string, EndedPayout>()
  readonly #differing = new Map<string, EndedPayout>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async note({ merchantId, payoutId }: PayoutKey, message: PublishedMessage): Promise<void> {
    const key = keyOf({ merchantId, payoutId })
    const known = this.#differing.get(key) ?? this.#unseen.get(key)
    const { published } = known ?? { published: nothingPublished() }
    addPublished(published, message)
    if (!known) this.#unseen.set(key, { merchantId, payoutId, published })
    if (this.#unseen.size >= PAGE) await this.#compare()
  }

  /**
   * Call this once everything was read. Returns the payouts with a published transition that their own story lacks.
   */
  async differing(): Promise<EndedPayout[]> {
    await this.#compare()
    return [...this.#differing.values()]
  }

  async #compare(): Promise<void> {
    const ended = [...this.#unseen.values()]
    this.#unseen.clear()
    const transitions = ended.flatMap((each) =>
      transitionsOf(each.published).map((transition) => ({ ...each, transition })),
    )
    for (const { transition, ...payout } of await lackedOf(this.#ledger.db, transitions))
      this.#differing.set(keyOf(payout), payout)
  }
}

/**
 * Applies to a locked payout that has ended what its published end requires, or that it was sent since. Versions continue above
 * all published ones: a reader who drops known event ids would otherwise never see a return of the money.
 */
export async function settleOtherEnd(
  tx: Transaction,
  payout: Payout,
  published: Published,
  ledger: Ledger,
): Promise<void> {
  const { highest } = published
  const passedSince = await passedBy(tx, payout, published)
  const { lost, passed } = lackedBy(payout, published, passedSince)
  const ends = lackedEnds(payout, published, passed)
  if (passed.length + lost.length + ends.length === 0) return
  const unknown = [...passed, ...lost]
  const submitted = submitsAmong(unknown)
  // A rejected one has no order number to record attempts of.
  const attempts = payout.orderNo === null ? 0 : submitted.length
  const counted = { ...payout, attempt: payout.attempt + attempts }
  const since = sentSince(counted, unknown, published, await ownStory(tx, payout, published, passedSince))
  const others = otherEnds(counted, ends, highest)
  const doubts = since ? [since, ...others.map(anomalyAlone)] : others
  const { attempt } = standsAt({ after: counted, doubts })
  const after = { ...payout, attempt, version: Math.max(payout.version, highest) }
  const recalled = { lost, passed, submitted, after, end: null, sent: false, held: null, doubts }
  await storeRecalled(tx, ledger, [{ before: payout, recalled, faults: [], isResultDue: false }])
}

const anomalyAlone = (decision: Decision): Decision =>
  'anomaly' in decision ? { anomaly: decision.anomaly } : { nothing: true }
