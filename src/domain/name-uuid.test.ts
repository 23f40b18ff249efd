import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { v5 } from 'uuid'
import { nameUuid } from './name-uuid.ts'

test('every name has the UUID that the package uuid gives it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const name = text.toWellFormed()
      assert.equal(nameUuid(name), v5(name, '0f6b7a52-5e0c-5b8e-9d5e-6a1c2f1b7d10'))
    }),
    { numRuns: 1_000 },
  )
})
