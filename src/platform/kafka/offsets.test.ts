import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExpectedOffsets, startAt } from './offsets.ts'

const log = { id: 'log', low: 10n, high: 20n }
const at = (offset: bigint, logId: string | null = 'log') => ({ offset, logId })

test('reading begins where the store asks, the end included', () => {
  assert.deepEqual(startAt(at(15n), log), { offset: 15n, remark: 'none' })
  assert.deepEqual(startAt(at(10n), log), { offset: 10n, remark: 'none' })
  assert.deepEqual(startAt(at(20n), log), { offset: 20n, remark: 'none' })
})

test('without a stored offset reading begins with the oldest record', () => {
  assert.deepEqual(startAt(null, log), { offset: 10n, remark: 'none' })
})

test('records deleted from Kafka before they were read are reported', () => {
  assert.deepEqual(startAt(at(9n), log), { offset: 10n, remark: 'records-gone' })
})

test('a log that ends before the stored offset is read again from its beginning', () => {
  assert.deepEqual(startAt(at(21n), log), { offset: 10n, remark: 'log-is-older' })
  assert.deepEqual(startAt(at(15n), { ...log, epochEnd: 15n }), { offset: 15n, remark: 'none' })
  assert.deepEqual(startAt(at(15n), { ...log, epochEnd: 14n }), { offset: 10n, remark: 'log-is-older' })
})

test('an offset of another log counts for nothing, however long this log is', () => {
  assert.deepEqual(startAt(at(15n, 'old'), log), { offset: 10n, remark: 'another-log' })
  assert.deepEqual(startAt(at(15n, null), log), { offset: 15n, remark: 'none' })
  assert.deepEqual(startAt(at(15n), { ...log, id: null }), { offset: 15n, remark: 'none' })
})

test('a batch is accepted only if it was fetched from the expected offset', () => {
  const places = new ExpectedOffsets()
  assert.equal(places.admits('t/0', 5n), false)
  places.expect('t/0', 5n)
  assert.equal(places.admits('t/0', 4n), false)
  assert.equal(places.admits('t/0', 6n), false)
  assert.equal(places.admits('t/0', 5n), true)
})

test('a later batch is accepted after two seeks to the expected offset did not help', () => {
  const places = new ExpectedOffsets()
  places.expect('t/0', 5n)
  assert.equal(places.admits('t/0', 9n), false)
  places.expect('t/0', 5n)
  assert.equal(places.admits('t/0', 9n), false)
  places.expect('t/0', 5n)
  assert.equal(places.admits('t/0', 9n), true)
})

test('progress clears the memory of rejected batches', () => {
  const places = new ExpectedOffsets()
  places.expect('t/0', 5n)
  places.admits('t/0', 9n)
  places.admits('t/0', 9n)
  places.expect('t/0', 6n)
  assert.equal(places.admits('t/0', 9n), false)
})

test('an earlier batch is never accepted, however often it comes', () => {
  const places = new ExpectedOffsets()
  places.expect('t/0', 5n)
  for (let i = 0; i < 10; i++) assert.equal(places.admits('t/0', 4n), false)
})
