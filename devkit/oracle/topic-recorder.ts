import { randomUUID } from 'node:crypto'
import { type Admin, type Consumer, type EachMessagePayload, Kafka, logLevel } from 'kafkajs'
import type { Config } from '../../src/config/config.ts'
import { paise } from '../../src/domain/money.ts'
import { type Topics, topicNames } from '../../src/messages/topics.ts'
import type { Logger } from '../../src/platform/log.ts'
import { AvroReader } from './avro-reader.ts'
import { type RequestedPayout, whose } from './outcome.ts'
import type {
  PublishedAnomaly,
  PublishedEvent,
  PublishedPayinResult,
  PublishedRecords,
  PublishedResult,
} from './published-messages.ts'

/**
 * Reads everything that payoutd publishes, from the beginning, like any other consumer: with its own Kafka client
 * and Avro reader, which share no code with payoutd's.
 */
export class TopicRecorder {
  readonly #told = {
    results: [] as PublishedResult[],
    events: [] as PublishedEvent[],
    anomalies: [] as PublishedAnomaly[],
    payins: [] as PublishedPayinResult[],
  }
  /** Payouts that ended or are in review. */
  readonly #ended = new Set<string>()
  readonly #inReview = new Set<string>()
  readonly #next = new Map<string, bigint>()
  readonly #topics: string[]
  readonly #avro: AvroReader
  readonly #admin: Admin
  readonly #consumer: Consumer

  private constructor(config: Config, { results, events, anomalies, payinResults }: Topics, log: Logger) {
    this.#topics = [results, events, anomalies, payinResults]
    this.#avro = new AvroReader(config.registry)
    const kafka = new Kafka({
      ...config.kafka,
      clientId: 'payoutd-witness',
      logLevel: logLevel.WARN,
      logCreator:
        () =>
        ({ log: { message } }) =>
          log.debug(message),
    })
    this.#admin = kafka.admin()
    this.#consumer = kafka.consumer({
      groupId: `payoutd-witness-${randomUUID()}`,
      maxWaitTimeInMs: 100,
      // Tests kill brokers while it reads: it starts again, for as long as it takes.
      retry: {
        initialRetryTime: 100,
        maxRetryTime: 2_000,
        retries: 1_000,
        restartOnFailure: async () => true,
      },
    })
  }

  static async start(config: Config, log: Logger): Promise<TopicRecorder> {
    const recorder = new TopicRecorder(config, topicNames(config.topicPrefix), log)
    await recorder.#admin.connect()
    await recorder.#consumer.connect()
    await recorder.#consumer.subscribe({ topics: recorder.#topics, fromBeginning: true })
    await recorder.#consumer.run({ eachMessage: (message) => recorder.#hear(message) })
    return recorder
  }

  get told(): PublishedRecords {
    return this.#told
  }

  /** Whether the payout ended or is in review. */
  isDone(asked: Pick<RequestedPayout, 'merchantId' | 'payoutId'>): boolean {
    return this.#ended.has(whose(asked)) || this.#inReview.has(whose(asked))
  }

  /** Whether it has read all that was published before this call. */
  async hasReadAll(): Promise<boolean> {
    for (const topic of this.#topics) {
      for (const { partition, low, high } of await this.#admin.fetchTopicOffsets(topic)) {
        const next = this.#next.get(`${topic}/${partition}`) ?? BigInt(low)
        if (next < BigInt(high)) return false
      }
    }
    return true
  }

  /** Drops everything read so far, once it was checked. Later records count as new. */
  forget(): void {
    for (const heard of Object.values(this.#told)) heard.length = 0
    this.#ended.clear()
    this.#inReview.clear()
  }

  async stop(): Promise<void> {
    await this.#consumer.disconnect()
    await this.#admin.disconnect()
  }

  async #hear({ topic, partition, message }: EachMessagePayload): Promise<void> {
    const place = `${topic}/${partition}`
    const next = BigInt(message.offset) + 1n
    // Read again after a restart of this consumer: not a repeat of payoutd's.
    if (next <= (this.#next.get(place) ?? 0n)) return
    const { name, value } = await this.#avro.read(message.value ?? Buffer.alloc(0))
    const told = { ...value, eventId: String(message.headers?.ce_id ?? '') }
    if (name === 'in.payoutd.PayoutResult') this.#hearResult(inPaise(told) as PublishedResult)
    else if (name === 'in.payoutd.PayoutEvent') this.#hearEvent(told as unknown as PublishedEvent)
    else if (name === 'in.payoutd.PayoutAnomaly')
      this.#told.anomalies.push(told as unknown as PublishedAnomaly)
    else if (name === 'in.payoutd.PayinResult')
      this.#told.payins.push(told as unknown as PublishedPayinResult)
    this.#next.set(place, next)
  }

  #hearResult(result: PublishedResult): void {
    this.#told.results.push(result)
    this.#ended.add(whose(result))
    this.#inReview.delete(whose(result))
  }

  #hearEvent(event: PublishedEvent): void {
    this.#told.events.push(event)
    const isReview = event.toState === 'REVIEW' && !this.#ended.has(whose(event))
    if (isReview) this.#inReview.add(whose(event))
    else this.#inReview.delete(whose(event))
  }
}

const inPaise = ({ amount, fee, ...rest }: Record<string, unknown>): unknown => ({
  ...rest,
  amount: paise(amount as number),
  fee: fee === null ? null : paise(fee as number),
})
