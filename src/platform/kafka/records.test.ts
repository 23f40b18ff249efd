import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTraceparent } from '../traceparent.ts'
import { readHeader } from './records.ts'

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

test('a header too long to read counts as missing', () => {
  const headers = {
    traceparent: Buffer.alloc(1_000_000, 'a'),
    reason: [Buffer.from('first'), Buffer.from('x')],
  }
  assert.equal(readHeader(headers, 'traceparent'), undefined)
  assert.equal(readHeader(headers, 'reason'), 'first')
  assert.equal(readHeader(headers, 'other'), undefined)
})

test('a traceparent has a fixed length', () => {
  assert.equal(readTraceparent(TRACEPARENT), TRACEPARENT)
  for (const wrong of [`${TRACEPARENT}0`, `${TRACEPARENT}\n`, TRACEPARENT.slice(1), null, 55])
    assert.equal(readTraceparent(wrong), null)
})
