import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { sql } from '../../platform/postgres.ts'
import { keptCallbackChecks } from './kept-callbacks.ts'

const keep = sql<{ merchantId: string; count: number }>`
  insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed)
  select ${'merchantId'}, 'payout', 'o' || n, '', '' from generate_series(1, ${'count'}::int) n`

test('callbacks that are kept are warned of, by merchant, and it is said whom the settings have', async (t) => {
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
    'callbacks are kept: 1 of merchant acme, which came while it was not in the settings, and payoutd serve has not verified ' +
      'them since, the oldest from then; 2 of merchant bolt, which is not in the settings, the oldest from then',
  ])
})
