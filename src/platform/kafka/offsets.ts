/** What a partition holds now: from `low` (earlier records are gone) up to, and without, `high`. */
export type OffsetRange = { low: bigint; high: bigint }

/**
 * A partition's log. `id` is that of its topic; null: this Kafka gives topics no ids. `epochEnd`: where what was written under
 * the epoch that was asked about, or before, ends; absent or null: none was, or this Kafka does not tell.
 */
export type Log = OffsetRange & { id: string | null; epochEnd?: bigint | null }

/**
 * Where a store stands: `offset` is the next one that it wants from the log `logId` (null: it did not know). `epoch`: of the
 * leader that wrote what stands before that offset; absent or null: not known.
 */
export type Standing = { offset: bigint; logId: string | null; epoch?: number | null }

/** Where to begin, and what is remarkable about it. */
export type Start = { offset: bigint; remark: 'none' | 'records-gone' | 'log-is-older' | 'another-log' }

/**
 * Where reading a partition begins, given where the caller's store stands (null: it has nothing of the partition).
 * Offsets of another log say nothing about this one, and a log that ends before the offset, or whose leader has another end
 * of what was read, was replaced or restored, or lost its end: all that it holds is read, because new records have old offsets
 * there.
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

/** Whether Kafka lost what was read before that offset, given where the epoch ends in which it was written. */
export const isLost = ({ offset }: Pick<Standing, 'offset'>, epochEnd: bigint | null = null): boolean =>
  epochEnd !== null && offset > epochEnd

const TRIES = 2

/**
 * Which offset must come next in each partition of the current assignment. KafkaJS moves its own position
 * for reasons of its own (a reset, a batch that was fetched before a seek), and believing it would skip
 * records: a batch that was not fetched from the expected offset is turned away.
 */
export class ExpectedOffsets {
  readonly #next = new Map<string, { offset: bigint; turnedAway: number }>()

  clear(): void {
    this.#next.clear()
  }

  /** The partitions whose place is known. */
  known(): string[] {
    return [...this.#next.keys()]
  }

  /** Undefined while it is not known where the partition begins. */
  next(partition: string): bigint | undefined {
    return this.#next.get(partition)?.offset
  }

  /** Sets where the partition goes on. Asked for the same offset again, it remembers what it turned away. */
  expect(partition: string, offset: bigint): void {
    const before = this.#next.get(partition)
    this.#next.set(partition, { offset, turnedAway: before?.offset === offset ? before.turnedAway : 0 })
  }

  /**
   * Whether a batch that was fetched from offset `fetched` may be handled. One that starts later is taken
   * when seeking did not help twice: compaction left nothing in between.
   */
  admits(partition: string, fetched: bigint): boolean {
    const place = this.#next.get(partition)
    if (!place) return false
    if (fetched === place.offset) return true
    return fetched > place.offset && place.turnedAway++ >= TRIES
  }
}
