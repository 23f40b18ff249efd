import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import {
  isSame,
  type OwnStory,
  type Published,
  type PublishedTransition,
  transitionsOf,
} from '../../domain/recovery/published-story.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Database, Transaction } from '../../platform/postgres/postgres.ts'
import { notOwn, ownTransitions, submissions } from './sql/read-back-published.ts'

type PassedTransition = PayoutKey & { transition: PublishedTransition }
type Runs = Pick<Database, 'run'>

const PAGE = 2_000

/**
 * Returns the published transitions that the ledger's own story of their payouts lacks, whatever their versions: since it was set
 * back, it has used those versions again. See `notOwn` for what it does not compare.
 */
export async function lackedOf<Each extends PassedTransition>(
  db: Runs,
  transitions: readonly Each[],
): Promise<Each[]> {
  if (transitions.length === 0) return []
  const published = transitions.map(({ merchantId, payoutId, transition }) => ({
    merchantId,
    payoutId,
    ...transition,
  }))
  const places = await db.run(notOwn, { published })
  return places.map(({ place }) => transitions[place - 1] as Each)
}

/** What was published of a locked payout under versions that the ledger has since used otherwise, in order. */
export async function passedBy(
  tx: Transaction,
  payout: Payout,
  published: Published,
): Promise<PublishedTransition[]> {
  const { merchantId, payoutId, version } = payout
  const transitions = transitionsOf(published)
    .filter((transition) => transition.version <= version)
    .map((transition) => ({ merchantId, payoutId, transition }))
  const lacked = await lackedOf(tx, transitions)
  return lacked.map(({ transition }) => transition).sort((a, b) => a.version - b.version)
}

/** The same for many payouts, compared a page at a time, so that it holds only what the ledger lacks. */
export class Passed {
  readonly #ledger: Ledger
  readonly #onLacked: (key: PayoutKey, transition: PublishedTransition) => void
  #unseen: PassedTransition[] = []

  constructor(ledger: Ledger, onLacked: (key: PayoutKey, transition: PublishedTransition) => void) {
    this.#ledger = ledger
    this.#onLacked = onLacked
  }

  async note(passed: PassedTransition): Promise<void> {
    this.#unseen.push(passed)
    if (this.#unseen.length >= PAGE) await this.compare()
  }

  /** Compares the rest, once everything was read. */
  async compare(): Promise<void> {
    const transitions = this.#unseen
    this.#unseen = []
    for (const { transition, ...key } of await lackedOf(this.#ledger.db, transitions))
      this.#onLacked(key, transition)
  }
}

/**
 * What the ledger itself has of a payout: in its history, and, where that is no longer kept, whatever was published up to its version
 * and is not among `passed`.
 */
export async function ownStory(
  tx: Transaction,
  { merchantId, payoutId, version }: Payout,
  published: Published,
  passed: readonly PublishedTransition[],
): Promise<OwnStory> {
  const kept = await tx.run(ownTransitions, { merchantId, payoutId })
  const dropped = transitionsOf(published).filter(
    (each) =>
      each.version <= version &&
      !passed.some((one) => isSame(one, each)) &&
      !kept.some((one) => isSame(one, each)),
  )
  const submitted = await tx.run(submissions, { merchantId, payoutId })
  return { transitions: [...kept, ...dropped], submitted: submitted.map(({ at }) => at) }
}
