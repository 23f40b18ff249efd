import { type Publisher, RefusedByKafka } from '../../platform/kafka/producer.ts'
import type { OutgoingRecord } from '../../platform/kafka/records.ts'
import type { Logger } from '../../platform/log.ts'
import type { Counter } from '../../platform/metrics.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Heartbeats } from '../../platform/running/heartbeats.ts'
import { pause, waitFor } from '../../platform/running/lifecycle.ts'
import { quietPause } from '../../platform/running/quiet.ts'
import {
  addShards,
  deletePublished,
  lastPosition,
  leaveShards,
  nextMessages,
  type OutboxPlace,
  type Outgoing,
  setAside,
  takeShards,
} from './sql/outbox.ts'

export type RelayDeps = {
  db: Database
  /** A publisher for the topic alone, so that its failures touch no other topic. */
  publisherOf: (topic: string) => Pick<Publisher, 'publish'>
  /** Rejects if Kafka does not answer this process at all. */
  ping: () => Promise<void>
  owner: string
  shards: number
  published: Counter<'topic'>
  refused: Counter<'topic' | 'reason'>
  /** Each topic gives its own signs of life. */
  heartbeats: Omit<Heartbeats, 'silences' | 'failures' | 'forget'>
  log: Logger
}

/** How long a relay that leaves waits for Kafka, and then for PostgreSQL, which may be silent. */
const GOODBYE_MS = 5_000
const LEASE_MS = 10_000
/** Renewed well before it ends, so that a slow publish does not lose it. */
const RENEW_MS = 3_000
/** The limits for one topic in one shard, per turn: rows of the outbox, and bytes. */
const PER_QUEUE = 64
const PER_QUEUE_BYTES = 512 * 1024
/** How many bytes are published, and then deleted, together: one request. */
const PIECE_BYTES = 768 * 1024
/** How long the relay waits when it has found nothing. */
const IDLE_MS = 20
/** How long a turn waits for its topics. A slower topic goes on by itself, beside the turns of the others. */
const PATIENCE_MS = 250
const LONGEST_REST_MS = 5_000
/** How long a relay that publishes nothing, and fails, goes on before it asks whether Kafka is there at all. */
const LONGEST_FAILING_MS = 15_000
/**
 * Such a relay leaves free shards alone for this long, so that each relay that has not failed looks for them before. The one that
 * left them looks again after those that left them earlier.
 */
const YIELD_MS = 2 * RENEW_MS
const LOOK_AGAIN_MS = 3 * RENEW_MS

/**
 * Moves outbox rows to Kafka: read, publish, delete. A crash between publish and delete repeats the messages under the same
 * event ids. Any number of relays may run: each shard has one owner by lease, and a relay that was frozen past its lease can
 * only repeat what its successor published. The relay puts a message that Kafka refuses aside, so that it stops no other: later
 * ones of its key go on, and consumers of the topic find a gap in the versions. Topics share nothing: a slow one runs by itself,
 * and a failed one is tried again after a pause, while the others go on. The messages of a topic and key keep their order.
 * A relay that has only failed for a while, and that Kafka does not answer, leaves its shards to others, and takes them again only if
 * no other does.
 */
export class Relay {
  readonly #deps: RelayDeps
  #renewAt = 0
  #foundAt = 0
  readonly #moving = new Map<string, Promise<void>>()
  /** Topics that failed, and pause before the next try. */
  readonly #resting = new Set<string>()
  /** By topic: how often it has failed in a row. */
  readonly #failures = new Map<string, number>()
  /** Since when it may have had something to publish, and has published nothing. */
  #fruitlessSince: number | null = null
  /** Whether it has failed since then. */
  #hasFailed = false
  /** Whether it left its shards because it only failed, and has published nothing since. */
  #hasYielded = false
  readonly #leaving = new AbortController()

  constructor(deps: RelayDeps) {
    this.#deps = deps
  }

  /** One turn of the loop at `now` (monotonic ms); returns how many ms to wait before the next. */
  async turn(now: number): Promise<number> {
    this.#fruitlessSince ??= now
    if (this.#hasFailed && now - this.#fruitlessSince > LONGEST_FAILING_MS) {
      if (await this.#isKafkaThere()) this.#countAnew()
      else await this.#yield(now)
    }
    if (now >= this.#renewAt) await this.#renew(now)
    const but = [...this.#moving.keys(), ...this.#resting]
    const rows = await this.#deps.db.run(nextMessages, {
      owner: this.#deps.owner,
      but,
      limit: PER_QUEUE,
      bytes: PER_QUEUE_BYTES,
    })
    if (rows.length === 0 && but.length === 0) this.#countAnew()
    if (rows.length === 0) return quietPause(now - this.#foundAt, IDLE_MS)
    this.#foundAt = now
    const begun = [...Map.groupBy(rows, ({ topic }) => topic)].map(([topic, rows]) =>
      this.#begin(topic, rows),
    )
    await waitFor(Promise.all(begun), PATIENCE_MS)
    return 0
  }

  /** Otherwise a topic fails by itself, and the shards serve the others. */
  async #isKafkaThere(): Promise<boolean> {
    return this.#deps.ping().then(
      () => true,
      () => false,
    )
  }

  #countAnew(): void {
    this.#fruitlessSince = null
    this.#hasFailed = false
  }

  /** Resolves once the messages are moved, or have failed. */
  #begin(topic: string, rows: readonly Outgoing[]): Promise<void> {
    const { heartbeats } = this.#deps
    heartbeats.sign(nameOf(topic))
    const moved = this.#move(topic, rows)
      .then(
        () => this.#goOn(topic),
        (error: unknown) => this.#rest(topic, error),
      )
      .finally(() => {
        heartbeats.rest(nameOf(topic))
        this.#moving.delete(topic)
      })
    this.#moving.set(topic, moved)
    return moved
  }

  async #move(topic: string, rows: readonly Outgoing[]): Promise<void> {
    const { db, heartbeats, published } = this.#deps
    for (const piece of piecesOf(rows)) {
      const refusals = await this.#publish(topic, piece)
      if (refusals.size > 0) await this.#setAside(topic, piece, refusals)
      else await db.write('forget published', deletePublished, { topic, read: rowsOf(piece) })
      published.inc({ topic }, piece.length - refusals.size)
      this.#countAnew()
      this.#hasYielded = false
      heartbeats.sign(nameOf(topic))
    }
  }

  /** Returns the messages that Kafka refuses, with the reasons. Kafka has all others. */
  async #publish(topic: string, rows: readonly Outgoing[]): Promise<Map<Outgoing, string>> {
    const { publisherOf, heartbeats } = this.#deps
    const messages = new Map(rows.map((row) => [toMessage(row), row]))
    try {
      await publisherOf(topic).publish([...messages.keys()], () => heartbeats.sign(nameOf(topic)))
      return new Map()
    } catch (error) {
      if (!(error instanceof RefusedByKafka)) throw error
      return new Map(error.refused.map(({ record, reason }) => [messages.get(record) as Outgoing, reason]))
    }
  }

  #rest(topic: string, error: unknown): void {
    const failures = this.#failures.get(topic) ?? 0
    this.#hasFailed = true
    this.#deps.heartbeats.fail(nameOf(topic))
    this.#failures.set(topic, failures + 1)
    const retryInMs = Math.min(LONGEST_REST_MS, 100 * 2 ** failures)
    const line = { err: error, loop: 'relay', topic, retryInMs }
    if (failures === 0)
      this.#deps.log.error(
        line,
        'messages of this topic wait and payoutd retries them; other topics are not affected',
      )
    else this.#deps.log.debug(line, 'messages of this topic still wait')
    this.#resting.add(topic)
    void pause(retryInMs, this.#leaving.signal).then(() => this.#resting.delete(topic))
  }

  #goOn(topic: string): void {
    this.#deps.heartbeats.succeed(nameOf(topic))
    const failures = this.#failures.get(topic)
    if (!failures) return
    this.#failures.delete(topic)
    this.#deps.log.info({ loop: 'relay', topic, failures }, 'messages of this topic go on again')
  }

  async #setAside(
    topic: string,
    piece: readonly Outgoing[],
    refusals: ReadonlyMap<Outgoing, string>,
  ): Promise<void> {
    const { db, refused, log } = this.#deps
    const which = [...refusals].map(([{ position, n }, reason]) => ({ position, n, reason }))
    await db.write('set refused aside', setAside, { topic, read: rowsOf(piece), refused: which })
    for (const [{ key, eventId, type, value }, reason] of refusals) {
      refused.inc({ topic, reason })
      log.error(
        { topic, key, eventId, type, bytes: value.length, reason },
        'Kafka refuses this message, so it is not published: payoutd outbox list shows it; once Kafka accepts it, publish it with payoutd outbox retry',
      )
    }
  }

  /** Finishes the messages under way, unless Kafka is silent, and frees its shards for the next relay. No turn may follow. */
  async leave(): Promise<void> {
    this.#leaving.abort()
    await waitFor(Promise.all(this.#moving.values()), GOODBYE_MS)
    // Otherwise they are free once the lease ends.
    await waitFor(this.#leaveShards(), GOODBYE_MS)
  }

  async #leaveShards(): Promise<void> {
    await this.#deps.db.write('leave shards', leaveShards, { owner: this.#deps.owner })
  }

  /** If this throws, the shards become free when the lease ends: the relay does not renew it before. */
  async #yield(now: number): Promise<void> {
    await this.#leaveShards()
    const line = { loop: 'relay', failingMs: now - (this.#fruitlessSince ?? now) }
    if (this.#hasYielded) this.#deps.log.debug(line, 'the relay still fails, and leaves its shards again')
    else this.#deps.log.warn(line, 'the relay only fails, and leaves its shards to other processes')
    this.#hasYielded = true
    this.#countAnew()
    this.#renewAt = now + LOOK_AGAIN_MS
  }

  async #renew(now: number): Promise<void> {
    const { db, owner, shards } = this.#deps
    await db.write('add shards', addShards, { shards })
    const [position] = await db.run(lastPosition, {})
    const freeForMs = this.#hasYielded ? YIELD_MS : 0
    await db.write('take shards', takeShards, {
      ...{ owner, leaseMs: LEASE_MS, freeForMs },
      last: position?.last ?? null,
    })
    this.#renewAt = now + RENEW_MS
  }
}

/** The rows of the outbox that these messages stand in. */
function rowsOf(messages: readonly Outgoing[]): OutboxPlace[] {
  const rows: OutboxPlace[] = []
  for (const message of messages) {
    const { shard, position, eventId } = message
    if (isFirst(message)) rows.push({ shard, position, eventIds: eventId })
    else (rows.at(-1) as OutboxPlace).eventIds += `,${eventId}`
  }
  return rows
}

const isFirst = ({ n }: Outgoing): boolean => n === 1n

const nameOf = (topic: string) => `relay ${topic}`

/** Each with whole rows of the outbox. */
function* piecesOf(rows: readonly Outgoing[]): Generator<Outgoing[]> {
  let piece: Outgoing[] = []
  let bytes = 0
  for (const row of rows) {
    if (isFirst(row) && bytes > 0 && bytes + row.value.length > PIECE_BYTES) {
      yield piece
      piece = []
      bytes = 0
    }
    piece.push(row)
    bytes += row.value.length
  }
  yield piece
}

/** CloudEvents in the binary mode of its Kafka binding. */
function toMessage({ topic, key, eventId, type, value, headers, at }: Outgoing): OutgoingRecord {
  return {
    topic,
    key,
    value,
    headers: {
      ce_specversion: '1.0',
      ce_id: eventId,
      ce_type: type,
      ce_source: 'payoutd',
      ce_time: new Date(at).toISOString(),
      ...headers,
    },
  }
}
