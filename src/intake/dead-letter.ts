import { v5 as uuidv5 } from 'uuid'
import { type OutboxRow, shardOf } from '../ledger/messages.ts'
import type { Topics } from '../ledger/topics.ts'
import { headerText, type IncomingRecord } from '../platform/kafka/records.ts'
import { type SealingKeys, seal } from '../platform/seal.ts'

export type Origin = { topic: string; partition: number }

const NAMESPACE = '6f1f53cf-2d1c-5ad5-8c8d-1f2a31c9c0b4'

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
  const key = `${origin.topic}:${origin.partition}:${record.offset}`
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
    value: seal(Buffer.from(original), `dead-letter:${key}`, keys),
    headers: { reason, origin: key },
    about: null,
  }
}
