import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { type Database, sql } from '../../platform/postgres/postgres.ts'
import { SharedSlots } from '../../platform/running/shared-slots.ts'
import { LostCallbacks } from './lost-callbacks.ts'

const MERCHANTS = ['acme', 'bolt']
const lostOfBoth = sql<object>`
  insert into lost_callbacks (merchant_id, kind, order_no)
  select merchant_id, 'payout', 'O' || n from unnest('{acme,bolt}'::text[]) merchant_id, generate_series(1, 2) n`
const refusesAcme = sql<object>`
  alter table lost_callbacks add constraint odd check (merchant_id <> 'acme') not valid`
const shutsDown = sql<object>`do $$ begin raise sqlstate '57P01'; end $$`

/** Turns of the loop with two lost callbacks of each merchant, and the orders that the loop asks about. */
async function lostOf(t: Parameters<typeof testLedger>[0], write: (db: Database) => Database['write']) {
  const { ledger } = await testLedger(t)
  await ledger.db.run(lostOfBoth, {})
  const slots = new SharedSlots(8, MERCHANTS, silentLogger)
  const asked: string[] = []
  const db = { ...ledger.db, write: write(ledger.db) }
  const lost = new LostCallbacks('payout', { slots, ledger: { ...ledger, db }, log: silentLogger })
  const turn = () =>
    lost.turn(
      ({ merchantId }) => ({
        queryPolicy: QUERY_POLICY,
        ask: async () => {
          asked.push(merchantId)
          return 'order'
        },
      }),
      () => undefined,
    )
  return { ledger, slots, asked, turn }
}

test('lost callbacks of a merchant whose rows the database refuses hold up no other merchant', async (t) => {
  const { ledger, slots, asked, turn } = await lostOf(t, (db) => db.write)
  await ledger.db.run(refusesAcme, {})
  await turn()
  await slots.drain()
  assert.deepEqual(asked, ['bolt', 'bolt'])
})

test('if the database fails for one merchant, payoutd still asks about the orders that it took of earlier merchants', async (t) => {
  let calls = 0
  const { slots, asked, turn } = await lostOf(t, (db) => (name, statement, params) => {
    return ++calls === 2 ? (db.run(shutsDown, {}) as Promise<never>) : db.write(name, statement, params)
  })
  await assert.rejects(turn())
  await slots.drain()
  assert.deepEqual(asked, ['acme', 'acme'])
})

test('while payoutd waits for one merchant, the others have slots', async (t) => {
  const waits = Promise.withResolvers<never[]>()
  const began = Promise.withResolvers<void>()
  const { slots, turn } = await lostOf(t, () => () => {
    began.resolve()
    return waits.promise
  })
  const turned = turn()
  await began.promise
  assert.deepEqual([slots.room('acme'), slots.room('bolt')], [0, 1])
  waits.resolve([])
  await turned
})

test('if another loop holds all slots, payoutd looks for lost callbacks again within a second', async (t) => {
  const { slots, asked, turn } = await lostOf(t, (db) => db.write)
  const held = slots.owners.map((owner) => ({ owner, count: slots.room(owner) }))
  for (const { owner, count } of held) slots.take(owner, count)
  const waits = await turn()
  assert.deepEqual(asked, [])
  assert.ok(waits <= 1_000, `${waits} ms`)
  for (const { owner, count } of held) slots.giveBack(owner, count)
  await turn()
  await slots.drain()
  assert.equal(asked.length, 4)
})
