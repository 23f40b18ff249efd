import type { BatchMessage } from './kafkajs/record-batch.ts'

/** How many fetches must bring a batch with a wrong checksum until it counts as damaged where the broker keeps it. */
const FETCHES = 5

/**
 * Tells a batch that was damaged on its way, which another fetch brings intact, from one that Kafka has no better. Counts in
 * memory, by partition and by the offset from which was fetched: a damaged batch is always the first, and the only one, of a
 * fetch.
 */
export class DamagedBatches {
  readonly #fetches = new Map<string, { from: bigint; count: number }>()

  /** Throws if the messages stand for a damaged batch that is to be fetched again. */
  demandIntact(partition: string, from: bigint, messages: readonly BatchMessage[]): void {
    if (!messages.some(({ isDamaged }) => isDamaged)) {
      this.#fetches.delete(partition)
      return
    }
    const before = this.#fetches.get(partition)
    const count = before?.from === from ? before.count + 1 : 1
    this.#fetches.set(partition, { from, count })
    if (count < FETCHES)
      throw new Error(`the batch at offset ${from} has a wrong checksum (fetch ${count} of ${FETCHES})`)
  }
}
