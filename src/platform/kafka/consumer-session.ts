import type { Consumer, EachBatchPayload } from 'kafkajs'
import pLimit, { type LimitFunction } from 'p-limit'
import type { Logger } from '../log.ts'
import { Heartbeats } from '../running/heartbeats.ts'
import { pause, waitFor } from '../running/lifecycle.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import { DoubtfulBatches } from './doubtful-batches.ts'
import type { BatchMessage } from './kafkajs/record-batches/record-batch.ts'
import { ExpectedOffsets, isLost, type Log, type Standing } from './offsets.ts'
import { type PartitionLogs, partitionLogs } from './partition-logs.ts'
import type { IncomingRecord, RecordBatch } from './records.ts'

export type ConsumeOptions = {
  connection: KafkaConnection
  groupId: string
  topics: string[]
  /** How many partitions it handles at the same time. */
  partitionsAtOnce: number
  /** Upper limit of one batch, in bytes of one partition; KafkaJS unpacks a batch as a whole. */
  maxBytesPerPartition?: number
  /**
   * Returns where reading goes on, from the caller's own store (see `startAt`). `log` reports what Kafka holds and
   * where the store's epoch ends there; call it after you have read the store. From then on the returned position
   * counts as the store's position. The consumer calls `begin` for every partition after every assignment and after
   * every failed batch, once the handler is done with the partition's earlier batches, and also from time to time:
   * if the store was set back or the topic created again, reading goes on from there. `known`: the store's position
   * since the partition was assigned; at first, how far the group has read by the offset committed to Kafka.
   */
  begin: (
    at: Partition,
    log: (epoch?: number | null) => Promise<Log>,
    known: Standing | null,
  ) => Promise<Standing>
  /**
   * Resolves when the batch and its `nextOffset` are stored. If it throws, the consumer asks the store again for
   * its position, with growing pauses, while other partitions go on. After a partition has moved, another process
   * may handle it at the same time: storing must be idempotent and must never set an offset back.
   */
  handler: (batch: RecordBatch) => Promise<void>
  /**
   * Called whenever Kafka has answered, a request has timed out, or the consumer starts again: proof that it does
   * not stand still. Not called while one batch takes longer than `longestInHandMs` (10 minutes): its handler waits
   * for something that will not come.
   */
  sign?: () => void
  longestInHandMs?: number
  /**
   * Rejects if something that `failure` was about does not work for this process. A consumer whose every batch has failed for
   * `longestFailingMs` (30 s), or that could read no position for as long, then leaves the group for `awayMs` (10 s), so that other
   * members get its partitions; it stays away until this resolves.
   */
  ready?: (failure: unknown) => Promise<unknown>
  longestFailingMs?: number
  awayMs?: number
  log: Logger
}

/** Ends a session in which everything failed for too long, at last with `failure`. */
export class OnlyFails extends Error {
  readonly failure: unknown

  constructor(message: string, failure: unknown, options: ErrorOptions) {
    super(message, options)
    this.failure = failure
  }
}

export type Partition = { topic: string; partition: number }

const HEARTBEAT_MS = 2_000
/** How long a consumer that ends waits to leave its group at Kafka. */
const GOODBYE_MS = 5_000
/** How often it checks whether the store was set back or the topic created again, when no batch shows it. */
const LOOK_EVERY_MS = 3_000
/** After a crash, the dead process's partitions wait this long. Longer than anything may ever block the event loop. */
const SESSION_MS = 10_000
const METADATA_MS = 10_000
/** One of the largest batches takes a minute or two. If it starts again, it goes on after what is stored. */
const LONGEST_IN_HAND_MS = 600_000
const LONGEST_FAILING_MS = 30_000
/** KafkaJS fetches nothing from a broker while a batch of its last fetch is in hand. */
const LONGEST_AWAITED_MS = 1_000
const GROUP_IS_SHARED =
  'another program reads other topics in this consumer group, so Kafka gives each some partitions that the other one should read: ' +
  'give it, or this payoutd, another group'
/**
 * How far the wall clock is ahead of one that nobody sets. KafkaJS compares wall clocks: set back, it sends no heartbeat and asks for
 * no partitions until the clock is where it was.
 */
const aheadBy = (): number => Date.now() - performance.now()
const keyOf = ({ topic, partition }: Partition): string => `${topic}/${partition}`
/** What KafkaJS's types leave out. `messagesWithinOffset`: without what lies before the offset from which was fetched. */
type KafkajsBatch = {
  fetchedOffset: string
  rawMessages: BatchMessage[]
  messagesWithinOffset: BatchMessage[]
}
const fetchedFrom = (batch: EachBatchPayload['batch']): bigint =>
  BigInt((batch as unknown as KafkajsBatch).fetchedOffset)
const backOff = (failures: number): number => Math.min(10_000, 200 * 2 ** failures)

/** The life of one KafkaJS consumer: from connecting until it is stopped or crashes. */
export class ConsumerSession {
  readonly #options: ConsumeOptions
  readonly #signal: AbortSignal
  readonly #ended = new AbortController()
  /** Ends what waits: as `signal`, or when the session is over. */
  readonly #leaving = new AbortController()
  readonly #untilLeft: AbortSignal
  readonly #consumer: Consumer
  readonly #logs: PartitionLogs
  readonly #places = new ExpectedOffsets()
  /** Grows with every assignment: work begun under an earlier one must not change positions any more. */
  #generation = 0
  /** The store's expected position: what it reported when reading began, or the end of the last batch it stored. */
  readonly #stored = new Map<string, Standing>()
  readonly #inHand = new Map<string, Promise<void>>()
  /** When each batch in progress started. */
  readonly #inHandSince = new Map<Promise<void>, number>()
  /** The batches in progress that KafkaJS no longer waits for. */
  readonly #left = new Set<Promise<void>>()
  readonly #fewAtOnce: LimitFunction
  readonly #failures = new Map<string, number>()
  readonly #doubtful = new DoubtfulBatches()
  /** How long batches, and positions, of all partitions together have only failed. */
  readonly #outcomes = new Heartbeats()
  /** By partition: the offset that Kafka does not have yet. */
  readonly #uncommitted = new Map<string, Partition & { offset: string }>()
  #isCommitting = false
  readonly #background = new Set<Promise<void>>()
  #isLooking = false
  #started: Promise<unknown> = Promise.resolve()
  readonly #over: Promise<never>
  #crash: (error: Error) => void = () => undefined

  constructor(options: ConsumeOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#fewAtOnce = pLimit(options.partitionsAtOnce)
    this.#untilLeft = AbortSignal.any([signal, this.#leaving.signal])
    const kafka = kafkaFor(options.connection, options.log, this.#ended.signal)
    this.#logs = partitionLogs(options.connection, options.log, this.#ended.signal)
    this.#consumer = kafka.consumer({
      groupId: options.groupId,
      allowAutoTopicCreation: false,
      // Until then nobody reads a partition that was added.
      metadataMaxAge: METADATA_MS,
      heartbeatInterval: HEARTBEAT_MS,
      sessionTimeout: SESSION_MS,
      maxBytesPerPartition: options.maxBytesPerPartition ?? 128 * 1024,
      // Kafka answers as soon as there is anything.
      minBytes: 1,
      maxWaitTimeInMs: 200,
      // KafkaJS never restarts on its own: one way to recover is easier to trust than two.
      retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries: 6, restartOnFailure: async () => false },
    })
    this.#over = new Promise((_, reject) => {
      this.#crash = reject
    })
    // run() awaits it, but it may reject before run() gets there.
    this.#over.catch(() => undefined)
  }

  /** Whether it ever read a partition: a consumer can join a group although its topics are missing. */
  hasRead = false

  reading(): string[] {
    return this.#places.known()
  }

  /** Resolves when the signal stops it; rejects with the error that crashed the consumer. */
  async run(): Promise<void> {
    const { GROUP_JOIN, CRASH, FETCH, HEARTBEAT, REQUEST_TIMEOUT, RECEIVED_UNSUBSCRIBED_TOPICS } =
      this.#consumer.events
    for (const answered of [GROUP_JOIN, FETCH, HEARTBEAT]) this.#consumer.on(answered, () => this.#sign())
    // Kafka stands still, not this consumer; KafkaJS asks seven times.
    this.#consumer.on(REQUEST_TIMEOUT, () => this.#sign())
    this.#consumer.on(GROUP_JOIN, ({ payload }) => this.#assigned(payload.memberAssignment))
    this.#consumer.on(RECEIVED_UNSUBSCRIBED_TOPICS, ({ payload: { groupId, topicsNotSubscribed } }) =>
      this.#options.log.error({ groupId, topics: topicsNotSubscribed }, GROUP_IS_SHARED),
    )
    this.#consumer.on(CRASH, ({ payload }) => this.#crash(payload.error))
    let clock = aheadBy()
    const looking = setInterval(() => {
      if (aheadBy() < clock - HEARTBEAT_MS) this.#crash(new Error('the clock was set back'))
      clock = aheadBy()
      this.#lookAgain()
    }, LOOK_EVERY_MS)
    // Kafka may be silent while it begins, too.
    this.#started = this.#start().catch(this.#crash)
    try {
      await Promise.race([this.#over, aborted(this.#signal)])
    } finally {
      clearInterval(looking)
      await this.#close()
    }
  }

  async #start(): Promise<void> {
    await this.#consumer.connect()
    await this.#consumer.subscribe({ topics: this.#options.topics, fromBeginning: true })
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: this.#options.partitionsAtOnce,
      eachBatch: (payload) => this.#eachBatch(payload),
    })
  }

  #sign(): void {
    const { sign, longestInHandMs = LONGEST_IN_HAND_MS } = this.#options
    const tooLong = performance.now() - longestInHandMs
    if ([...this.#inHandSince.values()].every((since) => since > tooLong)) sign?.()
  }

  /** Waits for batches in progress to finish, but only for a moment for Kafka, which may be silent. */
  async #close(): Promise<void> {
    this.#leaving.abort()
    this.#places.clear()
    this.#generation++
    // A member that has not joined yet could not leave.
    const left = this.#started.then(() => this.#disconnect())
    await waitFor(Promise.all([left, ...this.#background]), GOODBYE_MS)
    this.#ended.abort()
    await Promise.all(this.#inHand.values())
  }

  async #disconnect(): Promise<void> {
    await this.#consumer.disconnect().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'Kafka client did not disconnect cleanly')
    })
    await this.#logs.close()
  }

  /** Fetches nothing before it knows where each partition begins: KafkaJS would use its own offsets. */
  #assigned(assignment: Record<string, number[]>): void {
    this.#generation++
    this.#places.clear()
    this.#stored.clear()
    this.#failures.clear()
    this.#uncommitted.clear()
    for (const [topic, partitions] of Object.entries(assignment)) {
      for (const partition of partitions) this.#place({ topic, partition })
    }
  }

  /** Pauses the partition until the caller's offset for it is known, then goes on from there. */
  #place(at: Partition): void {
    const generation = this.#generation
    this.#pause(at)
    this.#inBackground(async () => {
      // A batch of an earlier assignment may still be on its way into the caller's store.
      await this.#inHand.get(keyOf(at))
      for (let failures = 0; this.#isCurrent(generation); failures++) {
        try {
          const stored = await this.#begin(at)
          if (this.#isCurrent(generation)) this.#goOnAt(at, stored)
          return
        } catch (error) {
          this.#failed('positions', error)
          const retryInMs = backOff(failures)
          this.#options.log.warn(
            { err: error, ...at, retryInMs },
            'cannot find out yet where to read from, retrying',
          )
          await pause(retryInMs, this.#untilLeft)
        }
      }
    })
  }

  async #begin(at: Partition): Promise<Standing> {
    const generation = this.#generation
    const logOf = async (epoch?: number | null) => {
      const log = await this.#logs.logOf(at, epoch).catch((error: unknown) => {
        // This says nothing about the store: a partition without a leader must not end the reading of others.
        this.#outcomes.succeed('positions')
        throw error
      })
      // What an abandoned consumer returns says nothing about the log as it is now.
      if (!this.#isCurrent(generation)) throw new Error('the partitions were assigned anew meanwhile')
      return log
    }
    const { begin, groupId } = this.#options
    const known = this.#stored.get(keyOf(at))
    if (known) return this.#answered(await begin(at, logOf, known))
    const read = await this.#logs.committed(at, groupId)
    const stored = this.#answered(
      await begin(at, logOf, read === null ? null : { offset: read, logId: null }),
    )
    // An earlier owner may have stored more after it had lost the partition. A partition that nobody has read keeps no offset: a
    // ledger without it would look as if it were set back.
    if (read !== null && stored.offset !== read && this.#isCurrent(generation))
      this.#commit(at, stored.offset)
    return stored
  }

  #answered(stored: Standing): Standing {
    this.#outcomes.succeed('positions')
    return stored
  }

  #failed(what: 'batches' | 'positions', failure: unknown): void {
    const { longestFailingMs = LONGEST_FAILING_MS, ready } = this.#options
    this.#outcomes.fail(what)
    const failingMs = this.#outcomes.failures().get(what) ?? 0
    if (!ready || failingMs < longestFailingMs) return
    // Otherwise something is wrong with what could not be stored, wherever it is read.
    ready(failure).then(
      () => this.#outcomes.succeed(what),
      (cause: unknown) =>
        this.#crash(new OnlyFails(`all ${what} failed for ${Math.round(failingMs)} ms`, failure, { cause })),
    )
  }

  #goOnAt(at: Partition, stored: Standing): void {
    this.hasRead = true
    this.#stored.set(keyOf(at), stored)
    this.#places.expect(keyOf(at), stored.offset)
    this.#consumer.seek({ ...at, offset: stored.offset.toString() })
    this.#resume(at)
  }

  /** If nothing arrives, no batch would show that the store was set back or the topic created again. */
  #lookAgain(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#inBackground(async () => {
      for (const [key, before] of this.#stored) await this.#compare(key, before)
      this.#isLooking = false
    })
  }

  async #compare(key: string, before: Standing): Promise<void> {
    if (this.#inHand.has(key)) return
    const generation = this.#generation
    const [topic = '', partition] = key.split('/')
    const at = { topic, partition: Number(partition) }
    try {
      const stored = await this.#begin(at)
      const moved = stored.offset < before.offset || stored.logId !== before.logId
      if (moved && this.#isCurrent(generation)) this.#place(at)
    } catch (error) {
      this.#failed('positions', error)
      this.#options.log.debug({ err: error, ...at }, 'cannot check now whether the ledger was set back')
    }
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload
    const key = keyOf(batch)
    const next = this.#places.next(key)
    if (next === undefined) return
    const fetched = fetchedFrom(batch)
    if (!this.#places.admits(key, fetched)) {
      this.#options.log.debug(
        { ...place(batch), expected: String(next), fetched: String(fetched) },
        'batch turned away',
      )
      this.#place(place(batch))
      return
    }
    const generation = this.#generation
    const begun = () => this.#inHandSince.set(work, performance.now())
    const work: Promise<void> = this.#work(payload, begun, () => this.#left.has(work)).finally(() => {
      this.#left.delete(work)
      this.#inHandSince.delete(work)
      if (this.#inHand.get(key) === work) this.#inHand.delete(key)
    })
    this.#inHand.set(key, work)
    await waitFor(work, LONGEST_AWAITED_MS)
    if (this.#inHand.get(key) !== work || !this.#isCurrent(generation)) return
    this.#left.add(work)
    this.#pause(place(batch))
  }

  /**
   * Never rejects: KafkaJS would discard everything and join the group again. `begun`: called when the handler begins; `isLeft`:
   * whether KafkaJS does not wait for it.
   */
  async #work(
    { batch, heartbeat, resolveOffset }: EachBatchPayload,
    begun: () => void,
    isLeft: () => boolean,
  ): Promise<void> {
    const generation = this.#generation
    const at = place(batch)
    const last = batch.messages.at(-1)
    if (!last) return
    const messages = batch.messages as BatchMessage[]
    const records = messages.filter(({ isPassedOver }) => !isPassedOver).map(toRecord)
    // The last offset in the headers of the fetched batches (record-batch.ts).
    const nextOffset = BigInt(batch.lastOffset()) + 1n
    const { rawMessages, messagesWithinOffset: raw } = batch as unknown as KafkajsBatch
    const epoch = raw.at(-1)?.leaderEpoch ?? null
    const beat = setInterval(() => {
      // A rebalance shows up here as an error. The runner meets it again after this batch, and rejoins.
      heartbeat().catch(() => undefined)
    }, HEARTBEAT_MS)
    try {
      const stored = this.#stored.get(keyOf(at))
      if (!stored) return
      // Asked for after the fetch: the records are from this log or an earlier one.
      const logId = await this.#logs.idOf(at.topic)
      if (logId !== null && stored.logId !== null && logId !== stored.logId) {
        throw new Error(`topic ${at.topic} was deleted and made again`)
      }
      await this.#demandSameLog(at, stored, raw[0]?.leaderEpoch)
      this.#doubtful.demandCertain(keyOf(at), fetchedFrom(batch), rawMessages[0])
      if (nextOffset > BigInt(batch.highWatermark)) {
        throw new Error(
          `Kafka hands out offsets up to ${nextOffset}, and says it has them up to ${batch.highWatermark}`,
        )
      }
      await this.#fewAtOnce(() => {
        if (!this.#isCurrent(generation)) throw new Error('the partitions were assigned anew meanwhile')
        begun()
        return this.#options.handler({ ...at, records, nextOffset, epoch, stored })
      })
      this.#outcomes.succeed('batches')
      if (!this.#isCurrent(generation)) return
      this.#failures.delete(keyOf(at))
      const now = { ...stored, offset: nextOffset, epoch }
      if (isLeft()) {
        this.#goOnAt(at, now)
      } else {
        this.#stored.set(keyOf(at), now)
        this.#places.expect(keyOf(at), nextOffset)
        resolveOffset(last.offset)
      }
      this.#commit(at, nextOffset)
    } catch (error) {
      if (this.#isCurrent(generation)) this.#tryAgainLater(at, error)
    } finally {
      clearInterval(beat)
    }
  }

  /**
   * If Kafka lost records after they were read, another leader may have written new ones at the same offsets.
   * Records before this batch were then never read.
   */
  async #demandSameLog(at: Partition, stored: Standing, epoch: number | null = null): Promise<void> {
    const { epoch: before = null } = stored
    if (before === null || epoch === null || epoch === before) return
    const { epochEnd } = await this.#logs.logOf(at, before)
    if (isLost(stored, epochEnd))
      throw new Error(`Kafka lost what it had of ${keyOf(at)} between ${epochEnd} and ${stored.offset}`)
  }

  #tryAgainLater(at: Partition, error: unknown): void {
    this.#failed('batches', error)
    const generation = this.#generation
    const failures = this.#failures.get(keyOf(at)) ?? 0
    this.#failures.set(keyOf(at), failures + 1)
    const retryInMs = backOff(failures)
    this.#options.log.error({ err: error, ...at, retryInMs }, 'batch could not be stored, partition paused')
    this.#pause(at)
    this.#inBackground(async () => {
      await pause(retryInMs, this.#untilLeft)
      if (this.#isCurrent(generation)) this.#place(at)
    })
  }

  /** While one commit is under way, the next ones gather. */
  #commit(at: Partition, offset: bigint): void {
    this.#uncommitted.set(keyOf(at), { ...at, offset: offset.toString() })
    if (this.#isCommitting) return
    this.#isCommitting = true
    this.#inBackground(async () => {
      while (this.#uncommitted.size > 0) {
        const offsets = [...this.#uncommitted.values()]
        this.#uncommitted.clear()
        await this.#consumer.commitOffsets(offsets).catch((error: unknown) => {
          this.#options.log.debug({ err: error, offsets }, 'offsets not committed to Kafka')
        })
      }
      this.#isCommitting = false
    })
  }

  #isCurrent(generation: number): boolean {
    return generation === this.#generation && !this.#signal.aborted
  }

  #pause({ topic, partition }: Partition): void {
    this.#consumer.pause([{ topic, partitions: [partition] }])
  }

  #resume({ topic, partition }: Partition): void {
    this.#consumer.resume([{ topic, partitions: [partition] }])
  }

  #inBackground(work: () => Promise<void>): void {
    const running = work().finally(() => this.#background.delete(running))
    this.#background.add(running)
  }
}

const place = ({ topic, partition }: Partition): Partition => ({ topic, partition })

const toRecord = (message: EachBatchPayload['batch']['messages'][number]): IncomingRecord => ({
  unreadable: (message as BatchMessage).unreadable,
  offset: BigInt(message.offset),
  key: message.key,
  value: message.value,
  headers: message.headers ?? {},
  timestamp: Number(message.timestamp),
  leaderEpoch: (message as BatchMessage).leaderEpoch,
})

export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
