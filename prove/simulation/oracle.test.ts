import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { command } from '../../src/domain/commands/command.fixture.ts'
import { paise } from '../../src/domain/money.ts'
import { resolvePayout } from '../../src/operators/resolve-payout.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { Postgres } from './postgres.ts'
import type { Process } from './process.ts'
import { WHOLE } from './simulate.ts'
import { takeTimers } from './time.ts'
import { SimulatedWorld } from './world.ts'

let postgres: Postgres
before(async () => {
  postgres = await Postgres.open()
})
after(() => postgres.close())

const RULES = { refusesDuplicates: false, processes: 1, hasPaid: true, isForgetful: false }
const PAST_ITS_DEADLINE_MS = 150_000
const state = sql<object, { state: string; reason: string | null }>`
  select state, reason from payouts where payout_id = 'P1'`
const decision = { by: 'meera', reason: 'asked the gateway', shown: null }

test('the decision of a person on a payout with two ends over a restore breaks no invariant', async () => {
  takeTimers()
  const world = await SimulatedWorld.begin(RULES, WHOLE, postgres)
  const about = { merchantId: 'acme', payoutId: 'P1' }
  const now = async () => (await postgres.db.run(state, {}))[0]
  world.produce(command('P1', { amount: paise(20_000) }))
  await world.pass(PAST_ITS_DEADLINE_MS)
  assert.deepEqual(await now(), { state: 'review', reason: 'expired' })
  await world.copy()
  const order = world.gateway.orders.at(-1) ?? assert.fail()
  world.gateway.end(order, 'success', world.now)
  world.gateway.giveBack(order, world.now)
  world.oracle.doubts(order)
  const resolution = { kind: 'failed' } as const
  const resolved = await resolvePayout({ ...about, ...decision, resolution }, await world.personsLedger())
  assert.equal(resolved.kind, 'resolved')
  world.stir()
  await world.pass(1_000)
  assert.equal((await now())?.state, 'failed')

  await world.failOver()
  await world.act(world.callBack(world.gateway.callbacks[0] ?? assert.fail(), world.processes[0] as Process))
  await world.pass(1_000)
  assert.equal((await now())?.state, 'paid')
  await world.rest()
  assert.deepEqual(await now(), { state: 'review', reason: 'end-published' })
  world.end()
})
