import { hash } from 'node:crypto'
import type { Instant } from '../../domain/instant.ts'
import { scrub } from '../../domain/mask.ts'
import { recordAct } from '../../ledger/acts.ts'
import type { Topics } from '../../messages/topics.ts'
import type { Publisher } from '../../platform/kafka/producer.ts'
import { type IncomingRecord, readHeader } from '../../platform/kafka/records.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { DoesNotOpen, type SealingKeys } from '../../platform/seal.ts'
import { type Inside, type Original, openDeadLetter } from './dead-letter.ts'
import { keepReplays, type Replay, replaysOf } from './sql/replays.ts'

/** One record of the dead-letter topic. `at`: when it was put there. */
export type DeadLetter = {
  partition: number
  offset: bigint
  at: Instant
  reason: string
  /**
   * `topic#log:partition:offset` of the original record; see Standing for the log, which may be unknown. Once Kafka has lost the
   * end of that log, another record may stand there.
   */
  origin: string
  sealed: Buffer
  /** SHA-256 of `sealed`: no other letter has it, not even one of the same record. */
  id: string
  /** The latest replay; null: never replayed. */
  replayed: Replay | null
}

/** Hands over every record that a topic holds now. */
export type ReadTopic = (
  topic: string,
  onRecord: (record: IncomingRecord & { partition: number }) => void,
) => Promise<void>

/** `2:17`: the position of a dead letter in its topic, as operators name it. */
export const positionOf = ({ partition, offset }: Pick<DeadLetter, 'partition' | 'offset'>): string =>
  `${partition}:${offset}`

/**
 * All dead letters, in the order of their original records, without repeats (the relay publishes at least once). Holds all of
 * them in memory at once.
 */
export async function readDeadLetters(
  { deadLetters: topic }: Topics,
  { db, readTopic }: { db: Database; readTopic: ReadTopic },
): Promise<DeadLetter[]> {
  const letters = new Map<string, DeadLetter>()
  await readTopic(topic, ({ partition, offset, timestamp, headers, value }) => {
    const origin = readHeader(headers, 'origin') ?? ''
    const sealed = value ?? Buffer.alloc(0)
    const letter = {
      ...{ partition, offset, origin, sealed },
      at: timestamp,
      reason: readHeader(headers, 'reason') ?? 'not-from-payoutd',
      id: hash('sha256', sealed, 'hex'),
      replayed: null,
    }
    const name = origin === '' ? positionOf(letter) : letter.id
    if (!letters.has(name)) letters.set(name, letter)
  })
  const found = [...letters.values()].sort(byOrigin)
  const replays = await db.run(replaysOf, { letters: found.map(({ id }) => id) })
  const latest = new Map(replays.map(({ letter, ...replay }) => [letter, replay]))
  return found.map((letter) => ({ ...letter, replayed: latest.get(letter.id) ?? null }))
}

/** The content of a letter; null: none of the encryption keys at hand opens it. */
export function openLetter({ sealed, origin }: DeadLetter, keys: SealingKeys): Inside | null {
  try {
    return openDeadLetter(sealed, origin, keys)
  } catch (error) {
    if (error instanceof DoesNotOpen) return null
    throw error
  }
}

/** How many records a replay publishes and notes at a time. */
const CHUNK = 200

/**
 * Publishes the content of the letters as commands once more, in this order; intake decides about them as about any command. It
 * records the act first, because publishing cannot be undone, and notes the replayed letters last: if it is interrupted in
 * between, the next replay publishes them again, and intake finds them repeated.
 */
export async function replay(
  opened: readonly { letter: DeadLetter; original: Original }[],
  { by, reason }: { by: string; reason: string },
  { db, topics, publish }: { db: Database; topics: Topics } & Pick<Publisher, 'publish'>,
): Promise<void> {
  const who = { by, reason: scrub(reason) }
  for (let from = 0; from < opened.length; from += CHUNK) {
    const chunk = opened.slice(from, from + CHUNK)
    const subjects = chunk.map(({ letter }) => positionOf(letter))
    await recordAct(db, {
      command: 'dlq replay',
      ...who,
      merchantId: null,
      subjects,
      before: null,
      after: null,
    })
    await publish(
      chunk.map(({ original: { key, value, headers } }) => ({ topic: topics.commands, key, value, headers })),
    )
    await db.write('keep replays', keepReplays, {
      ...who,
      letters: chunk.map(({ letter }) => letter.id),
    })
  }
}

function byOrigin(a: DeadLetter, b: DeadLetter): number {
  const [one, other] = [placeOf(a), placeOf(b)]
  return one.log.localeCompare(other.log) || Number(one.offset - other.offset)
}

function placeOf({ origin, partition, offset }: DeadLetter): { log: string; offset: bigint } {
  const [, log, at] = /^(.*):(\d+)$/.exec(origin) ?? []
  return at === undefined ? { log: `?${partition}`, offset } : { log: log ?? '', offset: BigInt(at) }
}
