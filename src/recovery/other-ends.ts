import { keyOf, type Ledger, type PayoutKey, storeDecisions } from '../ledger/ledger.ts'
import { storeRecalled } from '../ledger/published.ts'
import { otherEnd, sentSince } from '../payout/other-end.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import {
  addPublished,
  nothingPublished,
  type Published,
  type PublishedEnd,
  type PublishedMessage,
  type PublishedTransition,
} from '../payout/published.ts'
import { lostSince, publishedAs } from '../payout/recall.ts'
import { isEnd } from '../payout/states.ts'
import type { Transaction } from '../platform/postgres.ts'
import { lackedOf, passedBy } from './passed.ts'
import { knowsOf, withOtherEnd } from './sql/lost.ts'

type Ended = PayoutKey & { published: Published }

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

  async note({ merchantId, payoutId }: PayoutKey, message: PublishedMessage): Promise<void> {
    const key = keyOf({ merchantId, payoutId })
    const known = this.#differing.get(key) ?? this.#unseen.get(key)
    const { published } = known ?? { published: nothingPublished() }
    addPublished(published, message)
    if (!known) this.#unseen.set(key, { merchantId, payoutId, published })
    if (this.#unseen.size >= PAGE) await this.#compare()
  }

  /** Once everything was read: those of which another end was published, or a version above theirs, or what their own story lacks. */
  async differing(): Promise<Ended[]> {
    await this.#compare()
    return [...this.#differing.values()]
  }

  async #compare(): Promise<void> {
    const ended = [...this.#unseen.values()]
    this.#unseen.clear()
    if (ended.length === 0) return
    const { db } = this.#ledger
    const places = await db.run(withOtherEnd, {
      merchantIds: ended.map(({ merchantId }) => merchantId),
      payoutIds: ended.map(({ payoutId }) => payoutId),
      states: ended.map(({ published: { end } }) => end?.status ?? null),
      utrs: ended.map(({ published: { end } }) => end?.utr ?? null),
      versions: ended.map(({ published: { highest } }) => highest),
    })
    const told = ended.flatMap((each) =>
      each.published.transitions.map((transition) => ({ ...each, transition })),
    )
    for (const each of [
      ...places.map(({ place }) => ended[place - 1] as Ended),
      ...(await lackedOf(db, told)),
    ]) {
      const { merchantId, payoutId, published } = each
      this.#differing.set(keyOf(each), { merchantId, payoutId, published })
    }
  }
}

/**
 * Does to a locked payout that has ended what the end does that was published of it, or that it was sent since. Versions go on
 * above all that were published: whoever drops what has an event id that is known would never hear of a return of the money.
 */
export async function settleOtherEnd(
  tx: Transaction,
  payout: Payout,
  published: Published,
  ledger: Ledger,
): Promise<void> {
  const { end, highest } = published
  const passed = await passedBy(tx, payout, published)
  const lost = lostSince(payout, published, end)
  const since = sentSince(payout, [...passed, ...lost], highest)
  const others = [...(end ? [end] : []), ...passed.flatMap((each) => endAmong(payout, each))].flatMap(
    (each) => {
      const decision = otherEnd(payout, each, highest)
      return decision ? [{ end: each, decision }] : []
    },
  )
  const news: Decision[] = []
  for (const other of others) if (!(await isKnown(tx, payout, other.end))) news.push(other.decision)
  if (!since && others.length > 0 && news.length === 0) return
  const decision = since ?? news.find((each) => 'change' in each) ?? news[0]
  const { attempt } = decision && 'change' in decision ? decision.change.after : payout
  const after = { ...payout, attempt, version: Math.max(payout.version, highest) }
  const recalled = { lost, passed, after, sent: false, held: null, doubt: null }
  const readBack = { before: payout, published: { ...published, end: null }, recalled, faults: [] }
  await storeRecalled(tx, ledger, [{ ...readBack, isResultDue: false }])
  if (decision) await storeDecisions(tx, ledger, [decision])
}

/** Its result is not known any more, as a later end was published. */
function endAmong(
  { orderNo, amount, currency }: Payout,
  { toState, version, reason, evidence, at }: PublishedTransition,
): PublishedEnd[] {
  if (!isEnd(toState)) return []
  const told = { version, reason, evidence, at, orderNo, amount, currency }
  const details = { agentpayOrderId: null, fee: null, utr: null, asEvent: true, asResult: false }
  return [{ ...told, ...details, status: toState }]
}

/** What the ledger has in its own story was followed by a person's decision. */
async function isKnown(tx: Transaction, payout: Payout, end: PublishedEnd): Promise<boolean> {
  const { merchantId, payoutId } = payout
  // Under this version stands its own end.
  const version = end.version === payout.version ? null : end.version
  const known = { merchantId, payoutId, version, state: end.status, published: publishedAs(end) }
  return (await tx.run(knowsOf, known)).length > 0
}
