import { ask, type Reader, type Request } from './kafkajs-request.ts'
import type { Cluster } from './topic-id.ts'

type EpochRequest = { topic: string; partition: number; epoch: number }

/**
 * Where a partition's log ends, by its leader now, for records written under an epoch or before. If a consumer had
 * read beyond that, Kafka has lost those records, whatever stands at their offsets now. Null: this Kafka does not
 * report it. Throws if another broker leads.
 */
export async function endOfEpoch(
  cluster: Cluster,
  leader: number,
  asked: EpochRequest,
): Promise<bigint | null> {
  return ask(await cluster.findBroker({ nodeId: String(leader) }), requestFor(asked))
}

/**
 * OffsetForLeaderEpoch (KIP-320), which KafkaJS 2.2.4 does not support. From version 3 on, read access to a topic
 * is enough.
 */
const requestFor = (asked: EpochRequest): Request<bigint | null> => ({
  ...{ apiKey: 23, apiVersion: 3, apiName: 'OffsetForLeaderEpoch' },
  write: (to) =>
    to
      .writeInt32(-1) // a consumer
      .writeInt32(1) // one topic
      .writeString(asked.topic)
      .writeInt32(1) // one partition
      .writeInt32(asked.partition)
      .writeInt32(-1) // whatever epoch the leader has
      .writeInt32(asked.epoch),
  read: (reader) => readEnd(reader, asked),
})

function readEnd(reader: Reader, { topic, partition, epoch }: EpochRequest): bigint | null {
  reader.readInt32() // throttle time
  reader.readInt32() // one topic
  reader.readString()
  reader.readInt32() // one partition
  const errorCode = reader.readInt16()
  reader.readInt32()
  reader.readInt32()
  const end = BigInt(String(reader.readInt64()))
  if (errorCode !== 0) {
    const about = `partition ${partition} of topic ${topic}`
    throw new Error(`Kafka does not tell where epoch ${epoch} of ${about} ends (error code ${errorCode})`)
  }
  return end < 0n ? null : end
}
