import type { Config } from '../config/config.ts'
import { schemaSubjects, type Topics, topicNames } from '../ledger/topics.ts'
import { connectAdmin } from '../platform/kafka/admin.ts'
import { type Codec, openCodec } from '../platform/kafka/codec.ts'
import { readTopics } from '../platform/kafka/reader.ts'
import { headerText, type IncomingRecord } from '../platform/kafka/records.ts'
import { connectRegistry } from '../platform/kafka/registry.ts'
import type { Logger } from '../platform/log.ts'
import type { Told, ToldAnomaly, ToldEvent, ToldResult } from './told.ts'

/** No member of it ever commits: its lag is everything there is. */
const NOBODY = 'payoutd-nobody'

/** Reads everything that payoutd publishes, from the beginning, as any other consumer would. */
export class Witness {
  readonly #told = {
    results: [] as ToldResult[],
    events: [] as ToldEvent[],
    anomalies: [] as ToldAnomaly[],
  }
  /** Payouts that ended, and those whose turn it is of a person. */
  readonly #ended = new Set<string>()
  readonly #inReview = new Set<string>()
  readonly #next = new Map<string, bigint>()
  readonly #config: Config
  readonly #topics: Topics
  readonly #codec: Codec
  readonly #log: Logger
  readonly #reading: { stop(): Promise<void> }

  private constructor(config: Config, topics: Topics, codec: Codec, log: Logger) {
    this.#config = config
    this.#topics = topics
    this.#codec = codec
    this.#log = log
    this.#reading = readTopics({
      connection: { ...config.kafka, clientId: 'payoutd-witness' },
      topics: [topics.results, topics.events, topics.anomalies],
      onRecord: (record) => this.#hear(record),
      log,
    })
  }

  static async start(config: Config, log: Logger): Promise<Witness> {
    const topics = topicNames(config.topicPrefix)
    const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
    return new Witness(config, topics, codec, log)
  }

  get told(): Told {
    return this.#told
  }

  /** Whether the payout ended, or waits for a person. */
  isDone(payoutId: string): boolean {
    return this.#ended.has(payoutId) || this.#inReview.has(payoutId)
  }

  /** Whether it has read all that was published before it was asked. */
  async hasReadAll(): Promise<boolean> {
    const admin = await connectAdmin(this.#config.kafka, this.#log)
    try {
      const { results, events, anomalies } = this.#topics
      const all = await admin.lag(NOBODY, [results, events, anomalies])
      return all.every(({ topic, partition, lag }) => (this.#next.get(`${topic}/${partition}`) ?? 0n) >= lag)
    } finally {
      await admin.close()
    }
  }

  /** Lets go of everything heard so far, once it was judged. What is published of it later is news. */
  forget(): void {
    for (const heard of Object.values(this.#told)) heard.length = 0
    this.#ended.clear()
    this.#inReview.clear()
  }

  stop(): Promise<void> {
    return this.#reading.stop()
  }

  async #hear(record: IncomingRecord & { topic: string; partition: number }): Promise<void> {
    const decoded = await this.#codec.decode(record.value)
    if (decoded.kind === 'undecodable') {
      throw new Error(`${record.topic} holds what its schemas do not read: ${decoded.detail}`)
    }
    const told = { ...(decoded.value as object), eventId: headerText(record.headers, 'ce_id') ?? '' }
    if (decoded.name === 'in.payoutd.PayoutResult') this.#hearResult(told as ToldResult)
    else if (decoded.name === 'in.payoutd.PayoutEvent') this.#hearEvent(told as ToldEvent)
    else if (decoded.name === 'in.payoutd.PayoutAnomaly') this.#told.anomalies.push(told as ToldAnomaly)
    this.#next.set(`${record.topic}/${record.partition}`, record.offset + 1n)
  }

  #hearResult(result: ToldResult): void {
    this.#told.results.push(result)
    this.#ended.add(result.payoutId)
    this.#inReview.delete(result.payoutId)
  }

  #hearEvent(event: ToldEvent): void {
    this.#told.events.push(event)
    if (event.toState === 'REVIEW' && !this.#ended.has(event.payoutId)) this.#inReview.add(event.payoutId)
    else this.#inReview.delete(event.payoutId)
  }
}
