import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { deleteKeptCallbacks, sweepKeptCallbacks } from '../../ledger/callbacks/sql/kept-callbacks.ts'
import { sweepCancels } from '../../ledger/sql/cancels.ts'
import { silentLogger } from '../../platform/log.ts'
import { type Connection, type Database, type Sql, sql } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { LagReport } from './lag.ts'
import { deleteOldLag } from './sql/lag.ts'

/** Runs `work` while another transaction holds what `take` locks. */
async function whileHeld(db: Database, take: Sql<object, never>, work: () => Promise<void>): Promise<void> {
  const [taken, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = db.transaction('test', async (tx) => {
    await tx.run(take, {})
    taken.resolve()
    await over.promise
  })
  await taken.promise
  try {
    await work()
  } finally {
    over.resolve()
    await holding
  }
}

const lags = sql<object, { merchantId: string; lagMs: number }>`
  select merchant_id, lag_ms from merchant_callback_lag order by merchant_id`
const holdLag = sql<object>`select from merchant_callback_lag where merchant_id = 'acme' for update`

test('the lag of one merchant’s callbacks is reported even if that of another cannot be', async (t) => {
  const { db } = (await testLedger(t)).ledger
  let slowest = new Map([['acme', 300]])
  const report = new LagReport({
    endpoint: { slowestMs: () => slowest },
    db,
    processId: 'p',
    log: silentLogger,
  })
  await report.turn()
  slowest = new Map([
    ['acme', 400],
    ['bolt', 500],
  ])
  let turn: Promise<number> | undefined
  await whileHeld(db, holdLag, async () => {
    turn = report.turn()
    await eventually('bolt to be reported', async () => (await db.run(lags, {})).length === 2)
  })
  await turn
  slowest = new Map()
  await report.turn()
  assert.deepEqual(await db.run(lags, {}), [
    { merchantId: 'acme', lagMs: 0 },
    { merchantId: 'bolt', lagMs: 0 },
  ])
})

const fill = [
  sql<object>`insert into merchant_callback_lag values ('acme', 'p', 1, '2020-01-01'), ('bolt', 'p', 1, '2020-01-01')`,
  sql<object>`insert into early_cancels values ('acme', 'a', 'w', 'COMMAND', '2020-01-01'), ('bolt', 'b', 'w', 'COMMAND', '2020-01-01')`,
  sql<object>`insert into cancelled_batches values ('acme', 'a', 'w', '2020-01-01'), ('bolt', 'b', 'w', '2020-01-01')`,
]
const keep = sql<{ hash: Buffer }>`
  insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed, at)
  select merchant_id, 'payout', 'o', ${'hash'}, ${'hash'}, '2020-01-01' from unnest('{acme,bolt}'::text[]) as m (merchant_id)`
const holdAll = sql<object>`
  with one as (select from merchant_callback_lag where merchant_id = 'acme' for update),
    two as (select from early_cancels where merchant_id = 'acme' for update),
    three as (select from cancelled_batches where merchant_id = 'acme' for update),
    four as (select from kept_callbacks where merchant_id = 'acme' for update)
  select from one, two, three, four`
const left = sql<object, { merchantId: string }>`
  select merchant_id from merchant_callback_lag union all select merchant_id from early_cancels
  union all select merchant_id from cancelled_batches union all select merchant_id from kept_callbacks`

test('rows of one merchant are swept whatever rows of another are locked', async (t) => {
  const { db } = (await testLedger(t)).ledger
  const bound = sql<object>`set local lock_timeout = '2s'`
  const hash = Buffer.from('h')
  for (const each of fill) await db.run(each, {})
  await db.run(keep, { hash })
  const inTime = (work: (tx: Connection) => Promise<unknown>) =>
    db.transaction('test', async (tx) => {
      await tx.run(bound, {})
      await work(tx)
    })
  await whileHeld(db, holdAll, async () => {
    await inTime((tx) => tx.run(deleteOldLag, { limit: 10 }))
    await inTime((tx) => tx.run(sweepCancels, { days: 1, limit: 10 }))
    const taken = ['acme', 'bolt'].map((merchantId) => ({ merchantId, orderNo: 'o', queryHash: hash }))
    await inTime((tx) => tx.run(deleteKeptCallbacks, { kind: 'payout', taken }))
    await inTime((tx) => tx.run(sweepKeptCallbacks, { days: 1, limit: 10 }))
    const merchants = (await db.run(left, {})).map(({ merchantId }) => merchantId)
    assert.deepEqual(merchants, ['acme', 'acme', 'acme', 'acme'])
  })
})
