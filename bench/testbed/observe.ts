import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../src/config/config.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { kafkaFor } from '../../src/platform/kafka/connection.ts'
import { readTopics } from '../../src/platform/kafka/reader.ts'
import type { IncomingRecord } from '../../src/platform/kafka/records.ts'
import type { Logger } from '../../src/platform/log.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { systemClock } from '../../src/platform/running/clock.ts'

/** A run that stands still this long has failed. */
const STUCK_MS = 60_000
const POLL_MS = 50

/** One payout as seen from outside; times in ms since the epoch. */
export type Observed = {
  payoutId: string
  /** When each state was stored, by its event, under the state's name there. */
  states: ReadonlyMap<string, number>
  /** When the gateway accepted the order, and when its callback was due, by the gateway's own books. */
  appliedAt: number
  calledBackAt: number
  /** When its result was appended to Kafka, by the broker's clock. */
  resultAt: number
}

type Result = { payoutId: string; orderNo: string; resultAt: number }

/** `firstAt`: when the first event was appended. `statesOf`: the times of each payout's states. */
export type Events = {
  firstAt: number
  statesOf: ReadonlyMap<string, ReadonlyMap<string, number>>
  messages: number
}

/** What Kafka shows of a contender, without asking it. */
export interface Observer {
  /** Resolves once `count` results are there, repeats included. Costs next to nothing. */
  results(count: number): Promise<void>
  /**
   * The first result of each payout, once `expected` payouts have one, and how many were published again. Throws if
   * a payout is not paid.
   */
  readResults(expected: number): Promise<{ results: Result[]; repeats: number }>
  /** What the events say, and how many results, events and anomalies there are. */
  readEvents(): Promise<Events>
  close(): Promise<void>
}

export async function openObserver(config: Config, log: Logger): Promise<Observer> {
  const topics = topicNames(config.topicPrefix)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const ended = new AbortController()
  const admin = kafkaFor(config.kafka, log, ended.signal).admin()
  await admin.connect()

  const count = async (topic: string): Promise<number> =>
    (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0)

  /** Reads from the beginning until `enough` is true for a record. */
  async function read(topic: string, enough: (record: IncomingRecord) => Promise<boolean>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onRecord = async (record: IncomingRecord) => {
      try {
        if (await enough(record)) resolve()
      } catch (error) {
        reject(error)
      }
    }
    const reading = readTopics({ connection: config.kafka, topics: [topic], onRecord, log })
    const late = setTimeout(() => reject(new Error(`stuck while reading ${topic}`)), STUCK_MS)
    await promise.finally(() => {
      clearTimeout(late)
      return reading.stop()
    })
  }

  return {
    async results(wanted) {
      let seen = 0
      let movedAt = systemClock.monotonic()
      while (seen < wanted) {
        const now = await count(topics.results)
        if (now > seen) movedAt = systemClock.monotonic()
        seen = now
        if (systemClock.monotonic() - movedAt > STUCK_MS)
          throw new Error(`stuck at ${seen} of ${wanted} results`)
        await delay(POLL_MS)
      }
    },

    async readResults(expected) {
      const results = new Map<string, Result>()
      let repeats = 0
      await read(topics.results, async ({ value, timestamp }) => {
        const decoded = await codec.decode(value)
        if (decoded.kind !== 'decoded') throw new Error(`a result cannot be read: ${decoded.reason}`)
        const { payoutId, mchOrderNo, status } = decoded.value as ResultRecord
        if (status !== 'PAID') throw new Error(`${payoutId} is ${status}`)
        if (results.has(payoutId)) repeats++
        else results.set(payoutId, { payoutId, orderNo: mchOrderNo, resultAt: timestamp })
        return results.size === expected
      })
      return { results: [...results.values()], repeats }
    },

    async readEvents() {
      const total = await count(topics.events)
      const statesOf = new Map<string, Map<string, number>>()
      let seen = 0
      let firstAt = Number.POSITIVE_INFINITY
      await read(topics.events, async ({ value, timestamp }) => {
        firstAt = Math.min(firstAt, timestamp)
        const decoded = await codec.decode(value)
        if (decoded.kind !== 'decoded') throw new Error(`an event cannot be read: ${decoded.reason}`)
        const { payoutId, toState, occurredAt } = decoded.value as EventRecord
        const states = statesOf.get(payoutId) ?? new Map<string, number>()
        if (!states.has(toState)) states.set(toState, Number(occurredAt))
        statesOf.set(payoutId, states)
        return ++seen === total
      })
      const others = await Promise.all([topics.results, topics.anomalies].map(count))
      return { firstAt, statesOf, messages: others.reduce((sum, each) => sum + each, total) }
    },

    close: () => admin.disconnect().finally(() => ended.abort()),
  }
}

type ResultRecord = { payoutId: string; mchOrderNo: string; status: string }
type EventRecord = { payoutId: string; toState: string; occurredAt: number | bigint }

/**
 * Adds to each result what its events say, and what the gateway's books in `stateFile` say about its order; the gateway must have
 * stopped. Throws unless it paid each exactly once and has no other order.
 */
export function compareWithBooks(
  results: readonly Result[],
  { statesOf }: Pick<Events, 'statesOf'>,
  stateFile: string,
): Observed[] {
  const orders = readOrders(stateFile)
  if (orders.size !== results.length)
    throw new Error(`${results.length} payouts have a result, and the gateway has ${orders.size} orders`)
  return results.map(({ payoutId, orderNo, resultAt }) => {
    const order = orders.get(orderNo)
    if (order?.timesPaid !== 1) throw new Error(`${payoutId} was paid ${order?.timesPaid ?? 0} times`)
    const { appliedAt, calledBackAt } = order
    const states = statesOf.get(payoutId)
    if (!states) throw new Error(`${payoutId} has a result and no event`)
    return { payoutId, states, appliedAt, calledBackAt, resultAt }
  })
}

type Order = { appliedAt: number; calledBackAt: number; timesPaid: number }

function readOrders(stateFile: string): Map<string, Order> {
  const state = new DatabaseSync(stateFile, { readOnly: true })
  try {
    const rows = state.prepare('select mch_order_no, accepted_at, settle_at, times_paid from orders').all()
    return new Map(
      rows.map((row) => [
        String(row.mch_order_no),
        {
          appliedAt: Number(row.accepted_at),
          calledBackAt: Number(row.settle_at),
          timesPaid: Number(row.times_paid),
        },
      ]),
    )
  } finally {
    state.close()
  }
}
