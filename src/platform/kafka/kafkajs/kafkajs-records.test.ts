import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeRecord } from './kafkajs-records.ts'

type Encoder = (record: Parameters<typeof encodeRecord>[0]) => { buffer: Buffer }
const kafkajsOwn = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/record/v0') as Encoder

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const text = fc.string({ unit: 'binary', maxLength: 40 }).map((each) => each.toWellFormed())
const either = fc.oneof(bytes, text)

test('every record has the same bytes as from KafkaJS itself', () => {
  const record = fc.record({
    offsetDelta: fc.nat(100_000),
    timestampDelta: fc.integer({ min: -1_000_000_000_000, max: 1_000_000_000_000 }),
    key: fc.option(either),
    value: fc.option(bytes),
    headers: fc.option(fc.dictionary(text, fc.oneof(either, fc.array(bytes, { maxLength: 3 }))), {
      nil: undefined,
    }),
  })
  fc.assert(
    fc.property(record, (each) => {
      const given = each as Parameters<typeof encodeRecord>[0]
      assert.deepEqual(encodeRecord(given).buffer, kafkajsOwn(given).buffer)
    }),
    { numRuns: 1_000 },
  )
})

test('a record may be larger than any before it', () => {
  for (const size of [3_000, 5_000, 1_000_000]) {
    const given = {
      offsetDelta: 1,
      timestampDelta: 0,
      key: 'k',
      value: Buffer.alloc(size, 7),
      headers: { a: 'b' },
    }
    assert.deepEqual(encodeRecord(given).buffer, kafkajsOwn(given).buffer)
  }
})
