import type { IHeaders } from 'kafkajs'
import type { Instant } from '../running/clock.ts'
import type { Standing } from './offsets.ts'

export type RecordHeaders = IHeaders

/** A record to publish. A null value is a tombstone. */
export type OutgoingRecord = {
  topic: string
  key: string | Buffer | null
  value: Buffer | null
  /** A list: the header stands there once for each value. */
  headers?: Record<string, string | Buffer | Buffer[]>
}

/** Why a record could not be read from its batch. Stable words; `detail` holds nothing of the content. */
export type Unreadable = { reason: 'unreadable-batch' | 'too-many-headers'; detail: string }

/**
 * A record as it was read. `timestamp`: when it was created or appended, as the topic is set. `unreadable`: it is not
 * what was written, and may stand for a whole batch, up to its offset.
 */
export type IncomingRecord = {
  unreadable?: Unreadable | undefined
  offset: bigint
  key: Buffer | null
  value: Buffer | null
  headers: RecordHeaders
  timestamp: Instant
  /** Of the leader that wrote it; absent or null: not known. */
  leaderEpoch?: number | null | undefined
}

/**
 * Consecutive records of one partition; none where all that was fetched is none (aborted, markers). `nextOffset` is where reading goes on once they are stored, and `epoch` that of the
 * leader that wrote what stands before it (absent or null: not known). `stored` is where
 * the store should stand before: a store that stands earlier has forgotten something, and must refuse the batch.
 */
export type RecordBatch = {
  topic: string
  partition: number
  records: IncomingRecord[]
  nextOffset: bigint
  epoch?: number | null
  stored: Standing
}

/** More than any header that payoutd reads may have: the longest is where a dead letter came from. */
const MOST_IN_HEADER = 512

/** The text of a header; of its first value where it was given several times. */
export function headerText(headers: RecordHeaders, name: string): string | undefined {
  const given = headers[name]
  return (Array.isArray(given) ? given[0] : given)?.toString()
}

/** The same for what is read and not only passed on: one of more than 512 bytes is as good as none. */
export function readHeader(headers: RecordHeaders, name: string): string | undefined {
  const given = headers[name]
  const first = Array.isArray(given) ? given[0] : given
  return first !== undefined && first.length <= MOST_IN_HEADER ? first.toString() : undefined
}
