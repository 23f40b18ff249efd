import { ExpectedFailure } from '../expected-failure.ts'
import type { Logger } from '../log.ts'
import { pause } from '../running/lifecycle.ts'
import { connectAdmin, stillHeldUp } from './admin.ts'
import type { KafkaConnection } from './connection.ts'
import { OpenTransaction } from './open-transaction.ts'
import { readTopics } from './reader.ts'
import type { TopicRecord } from './records.ts'

type ReadOptions = {
  connection: KafkaConnection
  topic: string
  onRecord: (record: TopicRecord) => void | Promise<void>
  /** Ends the reading; it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  log: Logger
}

/**
 * Passes on every record that a topic holds now, in order within a partition, and resolves after the last; leaves out what
 * arrives meanwhile. If the connection breaks, some records come twice. Rejects with what `onRecord` throws, and then calls it no
 * more; rejects if Kafka does not answer at first, or has no such topic, or the topic is replaced meanwhile; and before the first
 * record if a transaction stays open in it, because what stands behind it cannot be read.
 */
export async function readTopic(options: ReadOptions): Promise<void> {
  const ends = await endsOf(options)
  if (ends.size === 0) return
  const { connection, topic, onRecord, signal, log } = options
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const ended = new AbortController()
  const endWith = (error: unknown) => {
    ended.abort(error)
    reject(error)
  }
  const onAbort = () => endWith(signal?.reason)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  const reader = readTopics({
    connection,
    topics: [topic],
    onRecord: async (record) => {
      ended.signal.throwIfAborted()
      if (record.offset >= (ends.get(record.partition) ?? 0n)) return
      try {
        await onRecord(record)
      } catch (error) {
        endWith(error)
        throw error
      }
    },
    // The last offset may be no record, but the marker of a transaction; or retention may have deleted the rest.
    onPosition(partition, { offset, remark }) {
      if (remark === 'another-log' || remark === 'log-is-older')
        return endWith(
          new ExpectedFailure(`${topic} was replaced while payoutd read it: run the command again`),
        )
      if (offset >= (ends.get(partition) ?? 0n)) ends.delete(partition)
      if (ends.size === 0) resolve()
    },
    log,
  })
  try {
    await done
  } finally {
    signal?.removeEventListener('abort', onAbort)
    await reader.stop()
  }
}

/** Longer than a program that works keeps a transaction open. */
const TRANSACTION_ENDS_WITHIN_MS = 5_000
const LOOK_EVERY_MS = 250

/**
 * By partition, the offset after its last; empty ones are left out. Waits for the end of transactions that are open, but not of
 * those that begin meanwhile.
 */
async function endsOf({ connection, topic, signal, log }: ReadOptions): Promise<Map<number, bigint>> {
  const admin = await connectAdmin(connection, log)
  try {
    const whole = await admin.ranges(topic, 'uncommitted')
    for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
      const ranges = await admin.ranges(topic)
      const held = stillHeldUp(whole, ranges)
      if (held.length === 0)
        return new Map(
          ranges.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, high]),
        )
      if (waitedMs >= TRANSACTION_ENDS_WITHIN_MS) throw new OpenTransaction(topic, held)
      await pause(LOOK_EVERY_MS, signal)
      signal?.throwIfAborted()
    }
  } finally {
    await admin.close()
  }
}
