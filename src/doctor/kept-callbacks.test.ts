import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../test/ledger.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { keptCallbackChecks } from './kept-callbacks.ts'

const keep = sql<{ merchantId: string; count: number }>`
  insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed)
  select ${'merchantId'}, 'payout', 'o' || n, '', '' from generate_series(1, ${'count'}::int) n`

test('kept callbacks cause a warning by merchant, which says which merchants the settings have', async (t) => {
  const { ledger } = await testLedger(t)
  const [check] = keptCallbackChecks(ledger.db, new Map([['acme', {}]]))
  const found = async () => {
    const finding = await check?.run()
    return [finding?.state, finding?.what.replaceAll(/from \S+ \S+Z/g, 'from then')]
  }
  assert.deepEqual(await found(), ['good', 'no callback waits for its merchant'])
  await ledger.db.run(keep, { merchantId: 'acme', count: 1 })
  await ledger.db.run(keep, { merchantId: 'bolt', count: 2 })
  assert.deepEqual(await found(), [
    'warning',
    'payoutd keeps callbacks that it cannot verify yet: 1 of merchant acme, which was not in the settings when they came, and payoutd serve has not verified ' +
      'them since, the oldest from then; 2 of merchant bolt, which is not in the settings, the oldest from then',
  ])
})

const lose = sql<{ merchantId: string; orderNo: string }>`
  insert into lost_callbacks (merchant_id, kind, order_no) values (${'merchantId'}, 'payin', ${'orderNo'})`

test('orders with a lost callback cause a warning until payoutd has asked the gateway about them', async (t) => {
  const { ledger } = await testLedger(t)
  const [, check] = keptCallbackChecks(ledger.db, new Map([['acme', {}]]))
  assert.equal((await check?.run())?.state, 'good')
  await ledger.db.run(lose, { merchantId: 'acme', orderNo: 'o1' })
  for (const orderNo of ['o1', 'o2']) await ledger.db.run(lose, { merchantId: 'bolt', orderNo })
  const finding = await check?.run()
  assert.deepEqual(
    [finding?.state, finding?.what],
    [
      'warning',
      'payoutd could not keep callbacks, dropped them, doubts them, or lacked the account to ask, for 1 order of merchant acme, whose state the gateway has not reported yet; ' +
        '2 orders of merchant bolt, which is not in the settings',
    ],
  )
})
