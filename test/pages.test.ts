import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../src/domain/money.ts'
import { migrate } from '../src/ledger/tables/migrate.ts'
import { askAll, openReconciliation } from '../src/operators/reconcile/reconcile.ts'
import { reportOf } from '../src/operators/reconcile/report.ts'
import { listOpen } from '../src/operators/recovery/recovery.ts'
import { countOpenPayouts } from '../src/operators/recovery/sql/list.ts'
import { silentLogger } from '../src/platform/log.ts'
import { PAGE } from '../src/platform/postgres/pages.ts'
import { type Connection, type Database, sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { batchTotals } from '../src/queries/batch-totals.ts'
import { payoutsInStates } from '../src/queries/list-payouts.ts'
import { merchantOverviews } from '../src/queries/merchant-overview.ts'
import { openByAccount } from '../src/queries/open-by-account.ts'
import { findPayout } from '../src/queries/payout-story.ts'
import { openPayoutsInStates } from '../src/queries/sql/payouts/list.ts'
import { freshDatabase } from './database.ts'
import { fill } from './fill.ts'

/** Nine of ten are acme's: several pages. */
const PAYOUTS = 6 * PAGE
/** A page of a run's list, with each payout by key, and the few open ones, one in forty. */
const READ_AT_MOST = 3 * PAGE

const DAY = 86_400_000

const rowsFound = sql<object, { rows: bigint }>`
  select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as rows
  from pg_class where relnamespace = 'public'::regnamespace`

const answered = sql<object>`
  update reconciled_payouts set asked_at = now(), gateway_status = 'success', gateway_amount = 1, gateway_fee = 0,
    differences = case when payout_id like '%2' then '[{}]' else '[]' end::jsonb`

const asOneBatch = sql<object>`update payouts set batch_id = 'whole'`
const declareIt = sql<object>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  values ('acme', 'whole', 1, 1, 0, '', now())`

const earlierRun = sql<object>`
  insert into reconciliations (reconciliation_id, merchant_id, period_from, period_to, started_at, balance, in_flight, account_id)
  select gen_random_uuid(), merchant_id, period_from, period_to, started_at - interval '400 days', 0, 0, account_id
  from reconciliations`

/** The database, which counts the rows that each statement reads. */
function counting(db: Database): { db: Database; read: number[] } {
  const read: number[] = []
  const measured = async (run: (on: Connection) => Promise<never[]>) =>
    db.transaction('test', async (tx) => {
      const found = async () => Number((await tx.run(rowsFound, {}))[0]?.rows)
      const before = await found()
      const rows = await run(tx)
      read.push((await found()) - before)
      return rows
    })
  return {
    read,
    db: {
      ...db,
      run: (statement, params) => measured((on) => on.run(statement, params) as Promise<never[]>),
      write: (_name, statement, params) => measured((on) => on.run(statement, params) as Promise<never[]>),
    },
  }
}

test('no statement of a command reads more than a few pages, however many payouts there are', async (t) => {
  // Plans depend on statistics, and a reused database has those of another test.
  const { url, db: plain } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger)
  await fill(url, PAYOUTS)
  const { db, read } = counting(plain)
  const merchantId = 'acme'
  const worst: Record<string, number> = {}
  const step = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
    read.length = 0
    const result = await work()
    worst[name] = Math.max(...read)
    return result
  }
  const period = {
    merchantId,
    accountId: 'a',
    from: systemClock.now() - 400 * DAY,
    to: systemClock.now() + DAY,
  }
  const balance = async () =>
    ({ kind: 'balance', amount: paise(10_000), available: paise(10_000), exchange: {} }) as never
  const run = await step('begin', () => openReconciliation(period, { db, balance }))
  const deps = { ratePerSecond: 1e9, clock: systemClock, onProgress: () => undefined }
  const silent = async () => ({ kind: 'unknown', reason: 'timeout', exchange: {} }) as const
  const asked = await step('list', () =>
    askAll(run, { ...deps, db, query: silent, settle: async () => undefined, signal: AbortSignal.abort() }),
  )
  assert.equal(asked.ending, 'interrupted')
  await plain.run(answered, {})
  await plain.run(earlierRun, {})
  const line = { row: 2, utr: 'UTR2', amount: paise(10_002), mchOrderNo: null }
  const report = await step('report', () => reportOf({ ...run, periodFrom: period.from }, [line], db))
  assert.ok(report.listed > 4 * PAGE, `${report.listed} listed`)
  assert.ok(report.totals.paidThere === report.listed && report.differing.length > PAGE / 2)
  assert.ok('paid' in report.balance && report.balance.paid > 10_000n * BigInt(PAGE))
  assert.ok((report.statement?.differences.length ?? 0) > 4 * PAGE)
  for (const id of ['AP2', 'nobody']) await step(`find ${id}`, () => findPayout(db, merchantId, id))
  const fence = { merchantId, since: 0, by: 'asha', reason: 'a trial', oneStep: false, round: 0 }
  await step('recover', () => listOpen(db, fence))
  await step('count', () => db.run(countOpenPayouts, { merchantId }))
  await step('accounts', () => openByAccount(db))
  await step('merchants', () => merchantOverviews(db, { leftOf: () => paise(0), warm: 1 }))
  const ended = await step('payouts', () => payoutsInStates(db, { merchantId, states: ['paid'], limit: 9 }))
  assert.deepEqual(
    ended.map(({ payoutId }) => payoutId),
    [2, 3, 4, 5, 6, 7, 8, 10, 11].map((n) => `p${String(n).padStart(9, '0')}`),
  )
  await step('open', () => db.run(openPayoutsInStates, { merchantId, states: ['queued'], limit: 9 }))
  await plain.run(asOneBatch, {})
  await plain.run(declareIt, {})
  const { here } = await step('batch', () => batchTotals(db, { merchantId, batchId: 'whole' }))
  assert.ok(here.count > 4 * PAGE, `${here.count} payouts are in the batch`)
  t.diagnostic(JSON.stringify(worst))
  const tooMuch = Object.entries(worst).filter(([, rows]) => rows > READ_AT_MOST)
  assert.deepEqual(tooMuch, [])
})
