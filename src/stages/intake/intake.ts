import type { RecordBatch } from '../../platform/kafka/records.ts'
import { type ReadDeps, readRecord } from './parse-command.ts'
import { epochBetween, FetchedBatch } from './process-batch.ts'
import { type ReadCommand, type StoreDeps, store } from './store-batch.ts'

export type IntakeDeps = StoreDeps & ReadDeps

/** How many records one transaction takes: larger ones gain nothing and hold locks for longer. */
const CHUNK = 500

/** Records that are read side by side: each may have a schema of its own, which the registry has to be asked for. */
const READ_AT_ONCE = 25

/**
 * Takes one fetched batch of commands in. Resolves once everything is in the ledger with its offsets;
 * rejects when the database or the registry is down, or the ledger was set back: then the ledger is to be asked where
 * it stands, and what follows there handed in. Commands of a merchant whose locks are held wait in the ledger
 * (`takeInWaiting`).
 */
export async function processBatch(batch: RecordBatch, deps: IntakeDeps): Promise<void> {
  const { topic, partition, stored, records, nextOffset } = batch
  const origin = { topic, partition, logId: stored.logId }
  let from = stored.offset
  // Of a batch without records the place alone is stored.
  for (let begin = 0; begin === 0 || begin < records.length; begin += CHUNK) {
    const reads: ReadCommand[] = []
    const chunk = records.slice(begin, begin + CHUNK)
    for (let first = 0; first < chunk.length; first += READ_AT_ONCE) {
      const some = chunk.slice(first, first + READ_AT_ONCE).map(async (record) => ({
        origin,
        record,
        parsed: await readRecord(record, origin, deps),
      }))
      reads.push(...(await Promise.all(some)))
    }
    const next = records[begin + CHUNK]
    const until = next?.offset ?? nextOffset
    const epoch = next ? epochBetween(chunk.at(-1), next) : (batch.epoch ?? null)
    await store(new FetchedBatch(origin, { reads, from, until, epoch }, deps), deps)
    from = until
  }
}
