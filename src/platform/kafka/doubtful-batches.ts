import type { BatchMessage } from './kafkajs/record-batches/record-batch.ts'

/** How many fetches must bring a damaged batch until it counts as damaged where the broker keeps it. */
const FETCHES_OF_DAMAGED = 5
/** No checksum covers a first offset, but a bit that turns on the way does not turn the same way twice. */
const FETCHES_OF_OFFSET = 2

/**
 * Tells a batch that changed on its way, which another fetch brings right, from what Kafka has. In doubt is a damaged batch, and
 * one that does not begin at the offset from which was fetched: that may be a gap (compaction), or a position in the middle
 * of a batch. Such a batch is always the first of a fetch. It is believed after enough fetches, of which the last two say the
 * same. Counts in memory, by partition and by the offset from which was fetched.
 */
export class DoubtfulBatches {
  readonly #fetches = new Map<string, { from: bigint; says: string; count: number }>()

  /** Throws if what was fetched from offset `from` begins with a batch that is to be fetched again. `first`: its first message. */
  demandCertain(partition: string, from: bigint, first: BatchMessage | undefined): void {
    const doubt = first && doubtAbout(first, from)
    if (!doubt) {
      this.#fetches.delete(partition)
      return
    }
    const { says, fetches } = doubt
    const before = this.#fetches.get(partition)
    const count = before?.from === from ? before.count + 1 : 1
    this.#fetches.set(partition, { from, says, count })
    if (count < fetches || before?.says !== says)
      throw new Error(
        `fetched again: the batch at offset ${from} ${says} (fetch ${count}, at least ${fetches})`,
      )
  }
}

function doubtAbout({ damaged, batchFirst }: BatchMessage, from: bigint) {
  if (damaged) {
    const { named, next } = damaged
    const says = `is damaged, names ${named} as its last, and is followed by ${next ?? 'nothing intact'}`
    return { says, fetches: FETCHES_OF_DAMAGED }
  }
  if (batchFirst === from) return null
  return { says: `names ${batchFirst} as its first`, fetches: FETCHES_OF_OFFSET }
}
