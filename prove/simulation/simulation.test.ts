import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { systemClock } from '../../src/platform/running/clock.ts'
import { Postgres } from './postgres.ts'
import { simulate, trace } from './simulate.ts'

/** How long stories are simulated. */
const SECONDS = Number(process.env.SIMULATED_SECONDS ?? 5)

let postgres: Postgres
before(async () => {
  postgres = await Postgres.open()
})
after(() => postgres.close())

test('payoutd holds every invariant in as many stories as time allows', async (t) => {
  const until = systemClock.monotonic() + SECONDS * 1000
  let seed = 1
  let orders = 0
  for (; systemClock.monotonic() < until; seed++) {
    const { failure, ...told } = await simulate(seed, postgres)
    orders += told.orders
    assert.equal(failure, null, failure ? [`seed ${seed}:`, ...failure.story, failure.detail].join('\n') : '')
  }
  t.diagnostic(`${seed - 1} stories, ${orders} orders at the gateway`)
  assert.ok(orders > seed, 'stories in which nothing is sent prove nothing')
})

test('one seed always gives the same story, whatever was simulated before', async () => {
  const first = await trace(3, postgres)
  await trace(4, postgres)
  assert.deepEqual(await trace(3, postgres), first)
})
