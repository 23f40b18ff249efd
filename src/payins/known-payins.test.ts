import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, upsertMerchant } from '../../test/ledger.ts'
import { payinLedger } from '../../test/payins.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { payinsBeside } from './sql/known-payins.ts'

const put = sql<{ payinId: string; second: number; isKnown: boolean }>`
  insert into payins (merchant_id, payin_id, account_id, fingerprint, amount, currency, state, version, due_at, expires_at,
    created_at, unknown_since, pay_order_id)
  select 'acme', ${'payinId'}, 'here', '\\x00', 50000, 'INR', case when ${'isKnown'} then 'open' else 'unknown' end, 1, now(),
    now() + interval '1 hour', at, case when not ${'isKnown'} then at + interval '10 s' end, case when ${'isKnown'} then 'N' end
  from (select '2026-11-01'::timestamptz + ${'second'} * interval '1 s') created (at)`

test('a presence check of a payin asks about one from before it, and one created after its request can no longer be on its way', async (t) => {
  const { ledger } = await payinLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', ...ACCOUNT, feeEstimate: 0n })
  for (const [payinId, second] of [
    ['older', -60],
    ['lost', 0],
    ['meanwhile', 5],
    ['after', 60],
    ['newest', 120],
  ] as const)
    await ledger.db.run(put, { payinId, second, isKnown: payinId !== 'lost' })
  const beside = await ledger.db.run(payinsBeside, {
    merchantId: 'acme',
    payinId: 'lost',
    accountId: 'here',
  })
  assert.deepEqual(beside, [{ older: 'older', newer: 'after', newest: 'newest' }])
})
