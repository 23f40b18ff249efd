import { v5 as uuidv5 } from 'uuid'
import { type OutboxRow, shardOf } from '../ledger/messages.ts'
import type { Topics } from '../ledger/topics.ts'
import { headerText, type IncomingRecord } from '../platform/kafka/records.ts'
import { type SealingKeys, seal, unseal } from '../platform/seal.ts'

/** `logId`: of the log that held the record (see Standing). */
export type Origin = { topic: string; partition: number; logId: string | null }

/** A record as it came: what is inside a dead letter. */
export type Original = { key: Buffer | null; value: Buffer | null; headers: Record<string, string> }

const NAMESPACE = '6f1f53cf-2d1c-5ad5-8c8d-1f2a31c9c0b4'

const context = (origin: string) => `dead-letter:${origin}`

/**
 * The record's own bytes, sealed: bank details may stand anywhere in what cannot be decoded. The headers
 * carry reason and origin only; key and headers of the original are inside.
 */
export function deadLetter(
  record: IncomingRecord,
  origin: Origin,
  reason: string,
  topics: Topics,
  keys: SealingKeys,
): OutboxRow {
  const key = `${logOf(origin)}:${record.offset}`
  const original = JSON.stringify({
    key: record.key?.toString('base64') ?? null,
    value: record.value?.toString('base64') ?? null,
    headers: Object.fromEntries(
      Object.keys(record.headers).map((name) => [name, headerText(record.headers, name)]),
    ),
  })
  return {
    shard: shardOf(key),
    topic: topics.deadLetters,
    key,
    eventId: uuidv5(key, NAMESPACE),
    type: 'in.payoutd.DeadLetter',
    value: seal(Buffer.from(original), context(key), keys),
    headers: { reason, origin: key },
    about: null,
  }
}

/** `#` stands in no name of a topic. The same topic made again is another log: its dead letters are others. */
const logOf = ({ topic, partition, logId }: Origin): string =>
  logId === null ? `${topic}:${partition}` : `${topic}#${logId}:${partition}`

/** Opens what `deadLetter` sealed; `origin` is that of its headers. Throws DoesNotOpen as `unseal` does. */
export function openDeadLetter(sealed: Buffer, origin: string, keys: SealingKeys): Original {
  const { key, value, headers } = JSON.parse(unseal(sealed, context(origin), keys).toString())
  return { key: bytes(key), value: bytes(value), headers }
}

const bytes = (base64: string | null): Buffer | null =>
  base64 === null ? null : Buffer.from(base64, 'base64')
