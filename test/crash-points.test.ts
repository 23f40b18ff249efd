import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allPoints, requireTried } from '../prove/points.ts'
import { TRIED } from '../prove/sections/crash-points.ts'
import { COMMITS, PUBLISHERS, REQUESTS } from '../src/platform/running/crash-points.ts'

/** A payoutd with each of its crash points at one place. */
const CODE = [
  ...COMMITS.map((name) => `db.write('${name}', statement, {})`),
  ...REQUESTS.map((name) => `await call('${name}', params)`),
  ...PUBLISHERS.map((name) => `createPublisher('${name}', kafka, log)`),
]

test('every crash point is at one place in the code, and the prover has a run for it', () => {
  requireTried(TRIED, allPoints())
})

test('a crash point at two places, or at none, fails the proof', () => {
  assert.equal(allPoints(CODE).length, allPoints().length)
  assert.throws(() => allPoints([...CODE, "db.transaction('claim', work)"]), /"claim" at 2 places/)
  assert.throws(() => allPoints(CODE.filter((line) => !line.includes("'relay'"))), /"relay" at 0 places/)
})

test('a crash point that no run reaches fails the proof, and so does a run for a removed one', () => {
  const points = allPoints(CODE)
  assert.throws(
    () =>
      requireTried(
        TRIED.filter((name) => name !== 'claim'),
        points,
      ),
    /no run would reach before commit claim, after commit claim/,
  )
  assert.throws(() => requireTried([...TRIED, 'gone'], points), /no crash point called gone/)
})
