import { createRequire } from 'node:module'

type Metadata = { topicMetadata: { topicErrorCode: number; topic: string; partitionMetadata: unknown[] }[] }
type Response = { parse(metadata: Metadata): Promise<Metadata> }
type Partitions = Record<string, number[]>
type MetadataCluster = {
  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[]
  brokerPool: { metadataExpireAt: number | null }
}
type OffsetManager = {
  cluster: MetadataCluster
  memberAssignment: Partitions
  resolveOffsets(): Promise<void>
}

const require = createRequire(import.meta.url)
const VERSIONS = [0, 1, 2, 3, 4, 5, 6]
/** How soon KafkaJS asks again which broker leads a partition without a leader; by default after five minutes. */
const ASK_AGAIN_MS = 1_000

/**
 * If one partition has no leader, KafkaJS 2.2.4 discards all that a broker reports about topics, so that nobody can
 * read or write the others. With this change it keeps that partition, led by broker -1: it fetches nothing from it
 * until it has a leader, and publishing to it, or asking for its offsets, fails with an error.
 */
export function keepPartitionsWithoutLeader(): void {
  for (const version of VERSIONS) {
    const response = require(`kafkajs/src/protocol/requests/metadata/v${version}/response.js`) as Response
    response.parse = exceptPartitions(response.parse)
  }
  const { prototype } = require('kafkajs/src/consumer/offsetManager/index.js') as { prototype: OffsetManager }
  const resolve = prototype.resolveOffsets
  prototype.resolveOffsets = function () {
    const all = this.memberAssignment
    this.memberAssignment = withLeader(all, this.cluster)
    // KafkaJS takes the list of partitions from there at once, and later changes from the answers.
    const resolving = resolve.call(this)
    this.memberAssignment = all
    return resolving
  }
}

/** Ignores errors of a partition; errors of a topic still throw. */
function exceptPartitions(parse: Response['parse']): Response['parse'] {
  return async (metadata) => {
    await parse({
      ...metadata,
      topicMetadata: metadata.topicMetadata.map((topic) => ({ ...topic, partitionMetadata: [] })),
    })
    return metadata
  }
}

function withLeader(assignment: Partitions, cluster: MetadataCluster): Partitions {
  let areAllLed = true
  const led = Object.entries(assignment).map(([topic, partitions]) => {
    const metadata = cluster.findTopicPartitionMetadata(topic)
    const leaderless = new Set(
      metadata.flatMap(({ partitionId, leader }) => (leader < 0 ? [partitionId] : [])),
    )
    const those = partitions.filter((partition) => !leaderless.has(partition))
    areAllLed &&= those.length === partitions.length
    return [topic, those] as const
  })
  const { brokerPool } = cluster
  if (!areAllLed) {
    brokerPool.metadataExpireAt = Math.min(brokerPool.metadataExpireAt ?? 0, Date.now() + ASK_AGAIN_MS)
  }
  return Object.fromEntries(led)
}
