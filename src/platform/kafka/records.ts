import type { IHeaders } from 'kafkajs'
import type { Instant } from '../running/clock.ts'
import type { Standing } from './offsets.ts'

export type RecordHeaders = IHeaders

/** A record to publish. A null value is a tombstone. */
export type OutgoingRecord = {
  topic: string
  key: string | Buffer | null
  value: Buffer | null
  /** A list: the record has the header once for each value. */
  headers?: Record<string, string | Buffer | Buffer[]>
}

/** Why a record could not be read from its batch. The words are stable; `detail` contains nothing of the content. */
export type Unreadable = { reason: 'unreadable-batch' | 'too-many-headers'; detail: string }

/**
 * A record as read. `timestamp`: when it was created or appended, depending on the topic's setting. `unreadable`:
 * it is not what the producer wrote, and may stand for a whole batch up to its offset.
 */
export type IncomingRecord = {
  unreadable?: Unreadable | undefined
  offset: bigint
  key: Buffer | null
  value: Buffer | null
  headers: RecordHeaders
  timestamp: Instant
  /** The epoch of the leader that wrote it; absent or null: not known. */
  leaderEpoch?: number | null | undefined
}

/** One that is read from a topic whose partitions are read together. */
export type TopicRecord = IncomingRecord & { partition: number }

/**
 * Consecutive records of one partition; empty if nothing fetched is a record (aborted, markers). `nextOffset` is
 * where reading goes on once they are stored, and `epoch` that of the leader that wrote what comes before it
 * (absent or null: not known). `stored` is the position that the store should have before: a store at an earlier
 * position has lost something and must refuse the batch.
 */
export type RecordBatch = {
  topic: string
  partition: number
  records: IncomingRecord[]
  nextOffset: bigint
  epoch?: number | null
  stored: Standing
}

/** More than any header that payoutd reads may have; the longest is the origin of a dead letter. */
const MOST_IN_HEADER = 512

/** The text of a header, or of its first value if it has several. One of more than 512 bytes counts as missing. */
export function readHeader(headers: RecordHeaders, name: string): string | undefined {
  const given = headers[name]
  const first = Array.isArray(given) ? given[0] : given
  return first !== undefined && first.length <= MOST_IN_HEADER ? first.toString() : undefined
}
