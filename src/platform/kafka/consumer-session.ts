import type { Consumer, EachBatchPayload } from 'kafkajs'
import type { Logger } from '../log.ts'
import { pause } from '../running/lifecycle.ts'
import { type KafkaConnection, kafkaFor } from './connection.ts'
import type { BatchMessage } from './kafkajs/record-batch.ts'
import { ExpectedOffsets, isLost, type Log, type Standing } from './offsets.ts'
import { type PartitionLogs, partitionLogs } from './partition-logs.ts'
import type { IncomingRecord, RecordBatch } from './records.ts'

export type ConsumeOptions = {
  connection: KafkaConnection
  groupId: string
  topics: string[]
  /** How many partitions are handled at the same time. */
  partitionsAtOnce: number
  /** Upper limit of one batch, in bytes of one partition; KafkaJS unpacks a batch as a whole. */
  maxBytesPerPartition?: number
  /**
   * Where reading goes on, from the caller's own store (see `startAt`); `log` tells what Kafka holds, and where the store's epoch
   * ends there, and is to be asked after the store. From then on the store stands at the answer. Asked for every partition after every assignment and
   * every batch that failed, once earlier batches of it are through the handler, and now and then in between: a store
   * that was set back, or a topic that was made again, is read again from there. `known`: where the store stood since the
   * partition was assigned; at first, how far the group has read it, by what was committed to Kafka.
   */
  begin: (
    at: Partition,
    log: (epoch?: number | null) => Promise<Log>,
    known: Standing | null,
  ) => Promise<Standing>
  /**
   * Resolves when the batch, and its `nextOffset`, are stored. When it throws, the store is asked again where it
   * stands, with growing pauses, and other partitions go on. A partition that moved to another process may be
   * handled there at the same time: storing must be idempotent and must not set an offset back.
   */
  handler: (batch: RecordBatch) => Promise<void>
  /**
   * Called whenever Kafka has answered or a request was given up, and whenever the consumer starts anew: it has not come to a standstill. Not while a
   * batch is in hand for longer than `longestInHandMs` (10 minutes): whatever its handler waits for does not come.
   */
  sign?: () => void
  longestInHandMs?: number
  log: Logger
}

export type Partition = { topic: string; partition: number }

const HEARTBEAT_MS = 2_000
/** How long a consumer that ends waits for Kafka to hear of it. */
const GOODBYE_MS = 5_000
/** How soon it shows that the store was set back, or the topic made again, where no batch shows it. */
const LOOK_EVERY_MS = 3_000
/** After a crash, what the dead process read waits for so long. Longer than the event loop may ever be blocked. */
const SESSION_MS = 10_000
/** A batch of the largest takes a minute or two, and goes on behind what is stored when it is begun anew. */
const LONGEST_IN_HAND_MS = 600_000
const keyOf = ({ topic, partition }: Partition): string => `${topic}/${partition}`
const backOff = (failures: number): number => Math.min(30_000, 200 * 2 ** failures)

/** The life of one KafkaJS consumer: from connecting until stopped, or until it crashes. */
export class ConsumerSession {
  readonly #options: ConsumeOptions
  readonly #signal: AbortSignal
  readonly #ended = new AbortController()
  readonly #consumer: Consumer
  readonly #logs: PartitionLogs
  readonly #places = new ExpectedOffsets()
  /** Grows with every assignment: what was begun under an earlier one must not touch positions any more. */
  #generation = 0
  /** Where the store should stand: what it said when reading began, or the end of the last batch that it stored. */
  readonly #stored = new Map<string, Standing>()
  readonly #inHand = new Map<string, Promise<void>>()
  /** Since when each of them is. */
  readonly #inHandSince = new Map<Promise<void>, number>()
  readonly #failures = new Map<string, number>()
  readonly #background = new Set<Promise<void>>()
  #isLooking = false
  readonly #over: Promise<never>
  #crash: (error: Error) => void = () => undefined

  constructor(options: ConsumeOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    const kafka = kafkaFor(options.connection, options.log, this.#ended.signal)
    this.#logs = partitionLogs(options.connection, options.log, this.#ended.signal)
    this.#consumer = kafka.consumer({
      groupId: options.groupId,
      allowAutoTopicCreation: false,
      heartbeatInterval: HEARTBEAT_MS,
      sessionTimeout: SESSION_MS,
      maxBytesPerPartition: options.maxBytesPerPartition ?? 128 * 1024,
      minBytes: 1,
      maxWaitTimeInMs: 50,
      // KafkaJS never restarts by itself: one way to recover is easier to trust than two.
      retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries: 6, restartOnFailure: async () => false },
    })
    this.#over = new Promise((_, reject) => {
      this.#crash = reject
    })
    // Awaited in run(), but it may reject before run() comes to it.
    this.#over.catch(() => undefined)
  }

  /** Whether any partition was ever read; a group can be joined without its topics. */
  hasRead = false

  reading(): string[] {
    return this.#places.known()
  }

  /** Resolves when stopped by the signal; rejects with what made the consumer crash. */
  async run(): Promise<void> {
    const { GROUP_JOIN, CRASH, FETCH, HEARTBEAT, REQUEST_TIMEOUT } = this.#consumer.events
    for (const answered of [GROUP_JOIN, FETCH, HEARTBEAT]) this.#consumer.on(answered, () => this.#sign())
    // It is Kafka that stands still; KafkaJS asks seven times.
    this.#consumer.on(REQUEST_TIMEOUT, () => this.#sign())
    this.#consumer.on(GROUP_JOIN, ({ payload }) => this.#assigned(payload.memberAssignment))
    this.#consumer.on(CRASH, ({ payload }) => this.#crash(payload.error))
    try {
      await this.#consumer.connect()
      await this.#consumer.subscribe({ topics: this.#options.topics, fromBeginning: true })
      await this.#consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: this.#options.partitionsAtOnce,
        eachBatch: (payload) => this.#eachBatch(payload),
      })
      const looking = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS)
      try {
        await Promise.race([this.#over, aborted(this.#signal)])
      } finally {
        clearInterval(looking)
      }
    } finally {
      await this.#close()
    }
  }

  #sign(): void {
    const { sign, longestInHandMs = LONGEST_IN_HAND_MS } = this.#options
    const tooLong = performance.now() - longestInHandMs
    if ([...this.#inHandSince.values()].every((since) => since > tooLong)) sign?.()
  }

  /** A batch in hand is waited for; Kafka, which may be silent, only for a moment. */
  async #close(): Promise<void> {
    this.#places.clear()
    this.#generation++
    const over = new AbortController()
    const goodbye = Promise.all([this.#disconnect(), ...this.#background])
    await Promise.race([goodbye, pause(GOODBYE_MS, over.signal)])
    over.abort()
    this.#ended.abort()
    await Promise.all(this.#inHand.values())
  }

  async #disconnect(): Promise<void> {
    await this.#consumer.disconnect().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'Kafka client did not disconnect cleanly')
    })
    await this.#logs.close()
  }

  /** Nothing is fetched before it is known where each partition begins: KafkaJS would use its own offsets. */
  #assigned(assignment: Record<string, number[]>): void {
    this.#generation++
    this.#places.clear()
    this.#stored.clear()
    this.#failures.clear()
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
          const retryInMs = backOff(failures)
          this.#options.log.warn(
            { err: error, ...at, retryInMs },
            'cannot find out yet where to read from, retrying',
          )
          await pause(retryInMs, this.#signal)
        }
      }
    })
  }

  async #begin(at: Partition): Promise<Standing> {
    const generation = this.#generation
    const logOf = async (epoch?: number | null) => {
      const log = await this.#logs.logOf(at, epoch)
      // What comes from a consumer that was given up is not a look at the log of now.
      if (!this.#isCurrent(generation)) throw new Error('the partitions were assigned anew meanwhile')
      return log
    }
    const { begin, groupId } = this.#options
    const known = this.#stored.get(keyOf(at))
    if (known) return begin(at, logOf, known)
    const read = await this.#logs.committed(at, groupId)
    const stored = await begin(at, logOf, read === null ? null : { offset: read, logId: null })
    // What has been told is not told again at the next start.
    if (read !== null && stored.offset < read) this.#commit(at, stored.offset)
    return stored
  }

  #goOnAt(at: Partition, stored: Standing): void {
    this.hasRead = true
    this.#stored.set(keyOf(at), stored)
    this.#places.expect(keyOf(at), stored.offset)
    this.#consumer.seek({ ...at, offset: stored.offset.toString() })
    this.#resume(at)
  }

  /** Where nothing arrives, no batch would show that the store was set back, or the topic made again. */
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
      this.#options.log.debug({ err: error, ...at }, 'whether the store was set back is not known now')
    }
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const { batch } = payload
    const key = keyOf(batch)
    const next = this.#places.next(key)
    if (next === undefined) return
    const fetched = BigInt((batch as unknown as { fetchedOffset: string }).fetchedOffset)
    if (!this.#places.admits(key, fetched)) {
      this.#options.log.debug(
        { ...place(batch), expected: String(next), fetched: String(fetched) },
        'batch turned away',
      )
      this.#place(place(batch))
      return
    }
    const work = this.#work(payload)
    this.#inHand.set(key, work)
    this.#inHandSince.set(work, performance.now())
    await work
    this.#inHandSince.delete(work)
    if (this.#inHand.get(key) === work) this.#inHand.delete(key)
  }

  /** Never rejects: KafkaJS would throw everything away and join the group again. */
  async #work({ batch, heartbeat, resolveOffset }: EachBatchPayload): Promise<void> {
    const generation = this.#generation
    const at = place(batch)
    const last = batch.messages.at(-1)
    if (!last) return
    const messages = batch.messages as BatchMessage[]
    const records = messages.filter(({ isPassedOver }) => !isPassedOver).map(toRecord)
    // The last offset in the headers of the batches that were fetched (record-batch.ts).
    const nextOffset = BigInt(batch.lastOffset()) + 1n
    const raw = (batch as unknown as { messagesWithinOffset: BatchMessage[] }).messagesWithinOffset
    const epoch = raw.at(-1)?.leaderEpoch ?? null
    const beat = setInterval(() => {
      // A rebalance shows here as an error; the runner meets it again after this batch, and joins anew.
      heartbeat().catch(() => undefined)
    }, HEARTBEAT_MS)
    try {
      const stored = this.#stored.get(keyOf(at))
      if (!stored) return
      // Asked for after the fetch: the records are of this log, or of an earlier one.
      const logId = await this.#logs.idOf(at.topic)
      if (logId !== null && stored.logId !== null && logId !== stored.logId) {
        throw new Error(`topic ${at.topic} was deleted and made again`)
      }
      await this.#demandSameLog(at, stored, raw[0]?.leaderEpoch)
      if (nextOffset > BigInt(batch.highWatermark)) {
        throw new Error(
          `Kafka hands out offsets up to ${nextOffset}, and says it has them up to ${batch.highWatermark}`,
        )
      }
      await this.#options.handler({ ...at, records, nextOffset, epoch, stored })
      if (!this.#isCurrent(generation)) return
      this.#failures.delete(keyOf(at))
      this.#stored.set(keyOf(at), { ...stored, offset: nextOffset, epoch })
      this.#places.expect(keyOf(at), nextOffset)
      resolveOffset(last.offset)
      this.#commit(at, nextOffset)
    } catch (error) {
      if (this.#isCurrent(generation)) this.#tryAgainLater(at, error)
    } finally {
      clearInterval(beat)
    }
  }

  /** What another leader wrote may stand at offsets of what Kafka has lost since it was read: before it, others were never read. */
  async #demandSameLog(at: Partition, stored: Standing, epoch: number | null = null): Promise<void> {
    const { epoch: before = null } = stored
    if (before === null || epoch === null || epoch === before) return
    const { epochEnd } = await this.#logs.logOf(at, before)
    if (isLost(stored, epochEnd))
      throw new Error(`Kafka lost what it had of ${keyOf(at)} between ${epochEnd} and ${stored.offset}`)
  }

  #tryAgainLater(at: Partition, error: unknown): void {
    const generation = this.#generation
    const failures = this.#failures.get(keyOf(at)) ?? 0
    this.#failures.set(keyOf(at), failures + 1)
    const retryInMs = backOff(failures)
    this.#options.log.error({ err: error, ...at, retryInMs }, 'batch could not be stored, partition paused')
    this.#pause(at)
    this.#inBackground(async () => {
      await pause(retryInMs, this.#signal)
      if (this.#isCurrent(generation)) this.#place(at)
    })
  }

  #commit(at: Partition, offset: bigint): void {
    this.#inBackground(async () => {
      try {
        await this.#consumer.commitOffsets([{ ...at, offset: offset.toString() }])
      } catch (error) {
        this.#options.log.debug({ err: error, ...at }, 'offset not committed to Kafka')
      }
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

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
