import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { Partitioners } from 'kafkajs'
import { murmur2, partitioner } from './partitioner.ts'

const kafkajsOwn = createRequire(import.meta.url)('kafkajs/src/producer/partitioners/default/murmur2') as (
  key: Buffer,
) => number

test('the hash of a key is that of KafkaJS, and so that of Java', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (key) => {
      assert.equal(murmur2(Buffer.from(key)), kafkajsOwn(Buffer.from(key)))
    }),
    { numRuns: 2_000 },
  )
})

const partitionMetadata = Array.from({ length: 6 }, (_, partitionId) => ({
  ...{ partitionId, leader: 1, partitionErrorCode: 0, replicas: [1], isr: [1] },
}))

test('a key has the partition that KafkaJS would give it', () => {
  const [ours, theirs] = [partitioner(), Partitioners.DefaultPartitioner()]
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const key = text.toWellFormed()
      const given = { topic: 'a', partitionMetadata, message: { key, value: null } }
      assert.equal(ours(given), theirs(given))
    }),
  )
})

test('records without a key go to all partitions in turn', () => {
  const ours = partitioner()
  const message = { key: null, value: null }
  const chosen = partitionMetadata.map(() => ours({ topic: 'a', partitionMetadata, message } as never))
  assert.deepEqual(
    chosen.sort(),
    partitionMetadata.map(({ partitionId }) => partitionId),
  )
})
