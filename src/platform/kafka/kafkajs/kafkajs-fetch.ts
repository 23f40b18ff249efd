import { createRequire } from 'node:module'
import { placeDamaged } from './record-batches/damaged-batch.ts'
import type { BatchMessage } from './record-batches/record-batch.ts'

export type FetchRequest = {
  topics: { topic: string; partitions: { partition: number; fetchOffset: string }[] }[]
}
type PartitionPart = { partition: number; highWatermark: string; messages: BatchMessage[] }
export type FetchResult = { responses: { topicName: string; partitions: PartitionPart[] }[] }
type FetchingBroker = { fetch(request: FetchRequest): Promise<FetchResult> }

const require = createRequire(import.meta.url)

/**
 * KafkaJS 2.2.4 drops what lies before the offset fetched from, and moves on if nothing is left. payoutd looks at the answer
 * before.
 */
export function checkFetches(): void {
  const broker: FetchingBroker = require('kafkajs/src/broker/index.js').prototype
  const { fetch } = broker
  broker.fetch = async function (request) {
    return asRequested(request, await fetch.call(this, request))
  }
}

/**
 * The answer with its damaged batches in place (damaged-batch.ts). No checksum covers the number of a partition: Kafka answers for each
 * requested one once, and what was not requested, or comes twice, is left out and fetched again.
 */
export function asRequested(request: FetchRequest, answer: FetchResult): FetchResult {
  const requested = new Map<string, bigint>()
  for (const { topic, partitions } of request.topics)
    for (const { partition, fetchOffset } of partitions)
      requested.set(`${topic}/${partition}`, BigInt(fetchOffset))
  const times = new Map<string, number>()
  for (const { topicName, partitions } of answer.responses)
    for (const { partition } of partitions) {
      const key = `${topicName}/${partition}`
      times.set(key, (times.get(key) ?? 0) + 1)
    }
  const responses = answer.responses.map(({ topicName, partitions }) => ({
    topicName,
    partitions: partitions.flatMap((part) => {
      const key = `${topicName}/${part.partition}`
      const from = requested.get(key)
      if (from === undefined || times.get(key) !== 1) return []
      return [{ ...part, messages: placeDamaged(part.messages, from, BigInt(part.highWatermark)) }]
    }),
  }))
  return { ...answer, responses }
}
