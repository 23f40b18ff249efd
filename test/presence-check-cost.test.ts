import assert from 'node:assert/strict'
import { test } from 'node:test'
import { payinsBeside } from '../src/payins/sql/known-payins.ts'
import { type Connection, sql } from '../src/platform/postgres/postgres.ts'
import { ordersBeside } from '../src/stages/outcomes/sql/known-orders.ts'
import { testLedger } from './ledger.ts'

const MANY = 20_000
/** No such order counts in a presence check: the gateway may no longer find an expired payin, nor say when a payout sent twice arrived. */
const fill = sql<{ many: number }>`
  with expired as (
    insert into payins (merchant_id, payin_id, account_id, fingerprint, amount, currency, state, version, pay_order_id,
                        created_at, expires_at)
    select 'acme', 'C' || n, 'one', '', 10000, 'INR', 'expired', 3, 'O' || n, now() - interval '6 days' + n * interval '1 second',
      now() - interval '3 days'
    from generate_series(1, ${'many'}::int) n
  )
  insert into payouts (merchant_id, payout_id, order_no, amount, currency, priority, state, version, ready, deadline,
                       account_id, agentpay_order_id, attempt, sent_at)
  select 'acme', 'p' || n, 'N' || n, 10000, 'INR', 0, 'paid', 5, false, now() + interval '3 days',
    'one', 'A' || n, 2, now() - interval '6 days' + n * interval '1 second'
  from generate_series(1, ${'many'}::int) n`
const analyze = sql<object>`analyze`
const rowsFound = sql<object, { rows: bigint }>`
  select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as rows
  from pg_class where relnamespace = 'public'::regnamespace`

test('a presence check reads a few rows, however many orders beside it do not count', async (t) => {
  const { db } = (await testLedger(t)).ledger
  await db.run(fill, { many: MANY })
  await db.run(analyze, {})
  const rowsRead = (work: (tx: Connection) => Promise<unknown>) =>
    db.transaction('test', async (tx) => {
      const found = async () => ((await tx.run(rowsFound, {})) as [{ rows: bigint }])[0].rows
      const before = await found()
      await work(tx)
      return (await found()) - before
    })
  const key = { merchantId: 'acme', accountId: 'one' }
  const ofPayins = await rowsRead((tx) => tx.run(payinsBeside, { ...key, payinId: `C${MANY}` }))
  const ofPayouts = await rowsRead((tx) => tx.run(ordersBeside, { ...key, payoutId: `p${MANY}` }))
  assert.ok(ofPayins < 20n, `${ofPayins} rows`)
  assert.ok(ofPayouts < 20n, `${ofPayouts} rows`)
})
