import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MISSING } from './missing.ts'
import { PRODUCT } from './parts.ts'
import { proveModel } from './prove.ts'

/** Always the same simulations, so that what is caught once is caught every time. */
const SEED = 20261121

test('payoutd holds every invariant in 2,000 orders of events', () => {
  const proof = proveModel({ parts: PRODUCT, seeds: 2_000, seed: SEED, shrink: true })
  assert.ok(proof.holds, proof.holds ? '' : [...proof.story, proof.detail].join('\n'))
})

describe('the model catches a payoutd in which', () => {
  for (const [what, parts] of Object.entries(MISSING)) {
    test(what, () => {
      const proof = proveModel({ parts: { ...PRODUCT, ...parts }, seeds: 3_000, seed: SEED, shrink: false })
      assert.equal(proof.holds, false)
    })
  }
})

test('a failure tells its story, and its seed and path lead to it again', () => {
  const parts = { ...PRODUCT, ...MISSING['amounts are not compared'] }
  const proof = proveModel({ parts, seeds: 500, seed: SEED, shrink: true })
  assert.ok(!proof.holds)
  assert.ok(proof.story.some((sentence) => /callback for P\d: (success|failed), ₹/.test(sentence)))
  const { seed, path, story } = proof
  const again = proveModel({ parts, seeds: 1, seed, path, shrink: false })
  assert.deepEqual(again.holds ? null : again.story, story)
})
