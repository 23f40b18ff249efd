import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asRequested, type FetchRequest, type FetchResult } from './kafkajs-fetch.ts'
import { damagedBatch } from './record-batches/damaged-batch.ts'
import type { BatchMessage } from './record-batches/record-batch.ts'

const request: FetchRequest = {
  topics: [
    {
      topic: 'commands',
      partitions: [
        { partition: 0, fetchOffset: '5' },
        { partition: 1, fetchOffset: '5' },
      ],
    },
  ],
}
const { damaged: _, ...nothing } = damagedBatch(5n, { named: 5n, next: null })
const message = (offset: bigint): BatchMessage => ({ ...nothing, offset: offset.toString() })

const part = (partition: number, ...messages: BatchMessage[]): FetchResult => ({
  responses: [{ topicName: 'commands', partitions: [{ partition, highWatermark: '9', messages }] }],
})
const together = (...all: FetchResult[]): FetchResult => ({
  responses: all.flatMap((each) => each.responses),
})

const numbers = (answer: FetchResult): number[] =>
  asRequested(request, answer).responses.flatMap((each) => each.partitions.map(({ partition }) => partition))

test('what Kafka answers for a partition that was not requested, or twice for one, is read of none', () => {
  assert.deepEqual(numbers(together(part(1), part(0))), [1, 0])
  assert.deepEqual(numbers(together(part(0), part(2))), [0])
  assert.deepEqual(numbers(together(part(1), part(1))), [])
})

const placed = (...messages: BatchMessage[]): BatchMessage[] =>
  asRequested(request, part(0, ...messages)).responses[0]?.partitions[0]?.messages ?? []

test('a batch that ends before the offset fetched from is damaged there, so that KafkaJS does not drop it', () => {
  const whole = [message(4n), message(5n)]
  assert.deepEqual(placed(...whole), whole)
  const read = placed(message(1n), message(2n))
  assert.deepEqual(
    read.map(({ offset, damaged }) => [offset, damaged]),
    [['5', { named: 2n, next: null }]],
  )
})

test('a damaged batch ends before the next intact one, else by its header or at the end of the partition, and never before the offset fetched from', () => {
  for (const [named, next, end] of [
    [6n, 8n, '7'],
    [700n, 8n, '7'],
    [6n, null, '6'],
    [700n, null, '8'],
    [1n, null, '5'],
    [6n, 3n, '5'],
    [6n, 700n, '8'],
  ] as const)
    assert.deepEqual(
      placed(damagedBatch(5n, { named, next })).map(({ offset }) => offset),
      [end],
    )
})
