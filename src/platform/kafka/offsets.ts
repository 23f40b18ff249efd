/** What a partition holds now: from `low` (earlier records are gone) up to `high`, exclusive. */
export type OffsetRange = { low: bigint; high: bigint }

/**
 * A partition's log. `id` is that of its topic; null: this Kafka has no topic ids. `epochEnd`: where records end
 * that were written under the requested epoch or before; absent or null: no epoch was requested, or this Kafka does
 * not report it.
 */
export type Log = OffsetRange & { id: string | null; epochEnd?: bigint | null }

/**
 * A store's position. `offset` is the next offset that it wants from the log `logId` (null: it did not know the
 * log). `epoch`: of the leader that wrote what comes before that offset; absent or null: not known.
 */
export type Standing = { offset: bigint; logId: string | null; epoch?: number | null }

/** Where to begin, and what is remarkable about it. */
export type Start = { offset: bigint; remark: 'none' | 'records-gone' | 'log-is-older' | 'another-log' }

/**
 * Where reading a partition begins, given the caller's stored position (null: it has none for the partition).
 * Offsets of another log say nothing about this one. If the log ends before the offset, or its leader reports
 * another end for the epoch, the log was replaced or restored, or lost its end: payoutd then reads all that it
 * holds, because new records have old offsets there.
 */
export function startAt(stored: Standing | null, { id, low, high, epochEnd }: Log): Start {
  if (stored === null) return { offset: low, remark: 'none' }
  if (stored.logId !== null && id !== null && stored.logId !== id) {
    return { offset: low, remark: 'another-log' }
  }
  if (stored.offset < low) return { offset: low, remark: 'records-gone' }
  if (stored.offset > high || isLost(stored, epochEnd)) return { offset: low, remark: 'log-is-older' }
  return { offset: stored.offset, remark: 'none' }
}

/**
 * Whether Kafka lost records that were read before that offset, given where the epoch ends in which they were
 * written.
 */
export const isLost = ({ offset }: Pick<Standing, 'offset'>, epochEnd: bigint | null = null): boolean =>
  epochEnd !== null && offset > epochEnd

const TRIES = 2

/**
 * Which offset must come next in each partition of the current assignment. KafkaJS moves its own position for its
 * own reasons (a reset, a batch fetched before a seek), and trusting it would skip records. So payoutd rejects a
 * batch that was not fetched from the expected offset.
 */
export class ExpectedOffsets {
  readonly #next = new Map<string, { offset: bigint; turnedAway: number }>()

  clear(): void {
    this.#next.clear()
  }

  /** The partitions with a known position. */
  known(): string[] {
    return [...this.#next.keys()]
  }

  /** Undefined while it is not known where the partition begins. */
  next(partition: string): bigint | undefined {
    return this.#next.get(partition)?.offset
  }

  /** Sets where the partition goes on. If the offset is the same as before, it keeps its memory of rejected batches. */
  expect(partition: string, offset: bigint): void {
    const before = this.#next.get(partition)
    this.#next.set(partition, { offset, turnedAway: before?.offset === offset ? before.turnedAway : 0 })
  }

  /**
   * Whether a batch fetched from offset `fetched` may be handled. It accepts a later start after two seeks did not
   * help: compaction left nothing in between.
   */
  admits(partition: string, fetched: bigint): boolean {
    const place = this.#next.get(partition)
    if (!place) return false
    if (fetched === place.offset) return true
    return fetched > place.offset && place.turnedAway++ >= TRIES
  }
}
