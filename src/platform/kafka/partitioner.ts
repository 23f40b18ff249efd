import { type ICustomPartitioner, Partitioners } from 'kafkajs'

/** A record with a key goes to the partition that every Kafka client gives it; one without takes its turn. */
export const partitioner: ICustomPartitioner = () => {
  const inTurn = Partitioners.DefaultPartitioner()
  return (given) => {
    const { key } = given.message
    return key === null || key === undefined
      ? inTurn(given)
      : (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & 0x7fffffff) %
          given.partitionMetadata.length
  }
}

const [M, SEED] = [0x5bd1e995, 0x9747b28c]

/**
 * KafkaJS 2.2.4 calculates the same with an object for each step.
 * Source: Kafka's Java client, org.apache.kafka.common.utils.Utils.murmur2.
 */
export function murmur2(data: Buffer): number {
  const whole = data.length & ~3
  let hash = SEED ^ data.length
  for (let i = 0; i < whole; i += 4) {
    const word = Math.imul(data.readInt32LE(i), M)
    hash = Math.imul(hash, M) ^ Math.imul(word ^ (word >>> 24), M)
  }
  for (let i = data.length - 1; i >= whole; i--) hash ^= (data[i] as number) << (8 * (i - whole))
  if (whole < data.length) hash = Math.imul(hash, M)
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
