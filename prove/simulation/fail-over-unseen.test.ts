import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Postgres } from './postgres.ts'
import { WHOLE } from './simulate.ts'
import { failOverUnseen } from './steps.ts'
import { takeTimers } from './time.ts'
import { SimulatedWorld } from './world.ts'

let postgres: Postgres
before(async () => {
  postgres = await Postgres.open()
})
after(() => postgres.close())

const RULES = { refusesDuplicates: false, processes: 1, hasPaid: true, isForgetful: false }
const LOSES_AN_APPLY = 7

test('a true confirmation about a later failover does not send again what an unseen failover lost', async () => {
  takeTimers()
  const world = await SimulatedWorld.begin(RULES, WHOLE, postgres)
  await world.pass(3_000)
  await failOverUnseen(world, 0, LOSES_AN_APPLY)
  assert.match(
    world.told.join('\n'),
    /without what was committed since\n.*with all\n.*acme lost nothing: it is fenced/,
  )
  const orders = world.gateway.orders.length
  await world.pass(5_000)
  await world.rest()
  assert.equal(world.gateway.orders.length, orders)
  world.end()
})
