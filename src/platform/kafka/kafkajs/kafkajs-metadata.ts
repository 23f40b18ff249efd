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
/** How soon KafkaJS asks again who leads a partition that has no leader; else it would after five minutes. */
const ASK_AGAIN_MS = 1_000
let done = false

/**
 * One partition without a leader makes KafkaJS 2.2.4 throw away all that a broker tells of topics, so that nobody reads
 * or writes the others. Now it keeps that partition, led by broker -1: nothing is fetched from it until it has a leader,
 * and whoever publishes to it, or asks for its offsets, meets an error.
 */
export function keepPartitionsWithoutLeader(): void {
  if (done) return
  done = true
  for (const version of VERSIONS) {
    const response = require(`kafkajs/src/protocol/requests/metadata/v${version}/response.js`) as Response
    response.parse = exceptPartitions(response.parse)
  }
  const { prototype } = require('kafkajs/src/consumer/offsetManager/index.js') as { prototype: OffsetManager }
  const resolve = prototype.resolveOffsets
  prototype.resolveOffsets = function () {
    const all = this.memberAssignment
    this.memberAssignment = withLeader(all, this.cluster)
    // Which partitions it is about it takes from there at once, and what comes later from the answers.
    const resolving = resolve.call(this)
    this.memberAssignment = all
    return resolving
  }
}

/** Without what is wrong with a partition: what is wrong with a topic is still thrown. */
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
