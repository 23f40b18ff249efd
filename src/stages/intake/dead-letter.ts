import { createHash } from 'node:crypto'
import { v5 as uuidv5 } from 'uuid'
import { deadLetterContext } from '../../ledger/encryption-contexts.ts'
import { type OutboxRow, shardOf } from '../../messages/messages.ts'
import type { Topics } from '../../messages/topics.ts'
import type { IncomingRecord } from '../../platform/kafka/records.ts'
import { type SealingKeys, seal, unseal } from '../../platform/seal.ts'

/** `logId`: the log that held the record (see Standing). */
export type Origin = { topic: string; partition: number; logId: string | null }

/** A record as it came, with all values of each header in their order. */
export type Original = { key: Buffer | null; value: Buffer | null; headers: Record<string, Buffer[]> }

/**
 * The content of a dead letter: the record, or, if that is too large or unreadable, what identifies it. The record itself is
 * then only at the letter's origin, for as long as Kafka keeps it. `sha256`: of the value, in hexadecimal.
 */
export type Inside =
  | ({ kind: 'original' } & Original)
  | { kind: 'trace'; why: string; bytes: number; sha256: string }

/**
 * The limit for key, value and headers together. Kafka accepts a message of 1 MB, and a dead letter is larger than its record.
 * No command within the bounds of `domain/limits.ts` comes near it.
 */
export const MAX_ORIGINAL_BYTES = 256 * 1024

/** Whether a record is larger than any command. Compressed, one of 16 MB may have come as a few hundred bytes. */
export function isTooLarge({ key, value, headers }: IncomingRecord): boolean {
  const inHeaders = Object.entries(headers).flatMap(([name, given]) => [name, given ?? []].flat())
  const bytes = [key ?? '', value ?? '', ...inHeaders].reduce((sum, { length }) => sum + length, 0)
  return bytes > MAX_ORIGINAL_BYTES
}

const NAMESPACE = '6f1f53cf-2d1c-5ad5-8c8d-1f2a31c9c0b4'

/**
 * The record's own bytes up to MAX_ORIGINAL_BYTES, sealed: bank details may be anywhere in a record that cannot be decoded. The
 * headers carry only reason and origin; key and headers of the original are inside.
 */
export function deadLetter(
  record: IncomingRecord,
  origin: Origin,
  reason: string,
  topics: Topics,
  keys: SealingKeys,
): OutboxRow {
  const key = nameOf(record, origin)
  const value = seal(Buffer.from(inside(record)), deadLetterContext(key), keys)
  return {
    shard: shardOf(key),
    topic: topics.deadLetters,
    key,
    eventId: uuidv5(value, NAMESPACE),
    type: 'in.payoutd.DeadLetter',
    value,
    headers: { reason, origin: key },
    about: null,
  }
}

/** A record of any size, sealed as in its dead letter. */
export const sealRecord = (record: IncomingRecord, origin: Origin, keys: SealingKeys): Buffer =>
  seal(Buffer.from(originalOf(record)), deadLetterContext(nameOf(record, origin)), keys)

/** The position of a record as a text: `origin` in the headers of a dead letter. */
export const nameOf = ({ offset }: IncomingRecord, origin: Origin): string => `${logOf(origin)}:${offset}`

const originalOf = ({ key, value, headers }: IncomingRecord): string =>
  JSON.stringify({
    key: key?.toString('base64') ?? null,
    value: value?.toString('base64') ?? null,
    headers: mapValues(headers, (given) =>
      [given ?? []].flat().map((value) => Buffer.from(value).toString('base64')),
    ),
  })

function inside(record: IncomingRecord): string {
  const value = record.value ?? Buffer.alloc(0)
  const original = originalOf(record)
  // Base64 has four characters for three bytes.
  const fits = original.length <= (MAX_ORIGINAL_BYTES * 4) / 3
  if (fits && !record.unreadable) return original
  const why = record.unreadable?.detail ?? `it is larger than ${MAX_ORIGINAL_BYTES} bytes`
  const sha256 = createHash('sha256').update(value).digest('hex')
  return JSON.stringify({ why, bytes: value.length, sha256 })
}

/** No topic name contains `#`. A topic that was deleted and made again is another log, with other dead letters. */
const logOf = ({ topic, partition, logId }: Origin): string =>
  logId === null ? `${topic}:${partition}` : `${topic}#${logId}:${partition}`

/** Opens what `deadLetter` sealed; `origin` is that of its headers. Throws DoesNotOpen as `unseal` does. */
export function openDeadLetter(sealed: Buffer, origin: string, keys: SealingKeys): Inside {
  const read = JSON.parse(unseal(sealed, deadLetterContext(origin), keys).toString())
  if ('why' in read) return { kind: 'trace', ...read }
  const { key, value, headers } = read
  return { kind: 'original', key: bytes(key), value: bytes(value), headers: mapValues(headers, headerValues) }
}

const headerValues = (kept: string[]): Buffer[] => kept.map((value) => Buffer.from(value, 'base64'))

const mapValues = <From, To>(given: Record<string, From>, map: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, map(value)]))

const bytes = (base64: string | null): Buffer | null =>
  base64 === null ? null : Buffer.from(base64, 'base64')
