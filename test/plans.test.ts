import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { awaitingKey } from '../src/doctor/sql/awaiting-key.ts'
import { saidAgainst } from '../src/domain/anomaly-details.ts'
import { paise } from '../src/domain/money.ts'
import { sentPayout } from '../src/domain/payout/payout.fixture.ts'
import { anomaliesBeside } from '../src/ledger/sql/anomalies.ts'
import { keepPaidAt, takePublished } from '../src/ledger/sql/kafka/published-messages.ts'
import { lockById, lockByOrder } from '../src/ledger/sql/lock.ts'
import { countRepeatedOfPayins, countUnmovedOfPayins, storeTransitions } from '../src/ledger/sql/store.ts'
import { otherPayinsWithUtrs, otherPayoutsWithUtrs } from '../src/ledger/sql/utrs.ts'
import { migrate } from '../src/ledger/tables/migrate.ts'
import { SHARDS } from '../src/messages/messages.ts'
import { notOwn, unlisted } from '../src/operators/recovery/sql/read-back-published.ts'
import {
  dueQuestions as duePayinQuestions,
  endedLeases,
  lockDue as lockDuePayins,
  overdueOfOthers,
} from '../src/payins/sql/due.ts'
import { payinsBeside } from '../src/payins/sql/known-payins.ts'
import { lockById as lockPayins } from '../src/payins/sql/lock.ts'
import { updatePayins } from '../src/payins/sql/store.ts'
import { payinAnomalies, payinHistory } from '../src/payins/sql/story.ts'
import { wakeDispatch } from '../src/payins/sql/wake.ts'
import { silentLogger } from '../src/platform/log.ts'
import {
  type Connection,
  connectDatabase,
  type Database,
  type Sql,
  sql,
} from '../src/platform/postgres/postgres.ts'
import { anomaliesOf } from '../src/queries/sql/anomalies.ts'
import { ledgerGauges } from '../src/queries/sql/ledger-gauges.ts'
import { inReview } from '../src/queries/sql/merchants.ts'
import { reportedContradictions } from '../src/queries/sql/payouts/contradictions.ts'
import { otherPaymentsOf } from '../src/queries/sql/payouts/other-payments.ts'
import { payoutsInReview } from '../src/queries/sql/payouts/review.ts'
import { attemptsMade, lockCandidates } from '../src/stages/dispatch/sql/claim.ts'
import { balanceWatermark, merchantsWithWork, traffic } from '../src/stages/dispatch/sql/funds.ts'
import { lockAwaitingKey, payoutsAwaitingKey } from '../src/stages/dispatch/sql/undecryptable.ts'
import { takenIn } from '../src/stages/intake/sql/commands.ts'
import { keepAndCompare, ownersOf, type Payment } from '../src/stages/intake/sql/holds.ts'
import { dueQuestions, dueTimers, lockDue } from '../src/stages/outcomes/sql/due.ts'
import { deletePublished, nextMessages } from '../src/stages/relay/sql/outbox.ts'
import { freshDatabase } from './database.ts'

/** How many rows each statement asks for. */
const WANTED = 50
/**
 * A claim finds each payout and its command, and an order number leads to a payout: two rows read per wanted row. A
 * scrape reads the most: it counts everything that waits, by kind.
 */
const READ_AT_MOST = 4 * WANTED
/** PostgreSQL plans the first five uses of a prepared statement one by one, and may keep one plan from then on. */
const USES = 7

const openLedger = sql<{ shards: number }>`
  with shards as (
    insert into relay_shards (shard, owner, lease_until)
    select generate_series(0, ${'shards'}::int - 1), 'me', 'infinity'
  )
  insert into merchants (merchant_id, settings_hash) values ('acme', '')`

/** Payouts of one merchant, each with an attempt and a message: paid, or from `queuedFrom` queued and due. */
const fill = sql<{ first: number; last: number; queuedFrom: number; shards: number }>`
  with numbered as (
    select n, 'p' || n as payout_id, n >= ${'queuedFrom'} as queued
    from generate_series(${'first'}::int, ${'last'}::int) n
  ), commands as (
    insert into payout_commands (merchant_id, payout_id, fingerprint, sealed)
    select 'acme', payout_id, '', '' from numbered
  ), made as (
    insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
    select 'acme', payout_id, 1, 'O' || n, 'me', now() from numbered
  ), payments as (
    insert into payments (merchant_id, payee_hash, amount, batch, pays_at, payout_id)
    select 'acme', int4send(n), 10000, payout_id, now(), payout_id from numbered
  ), beneficiaries as (
    insert into beneficiary_payments (merchant_id, beneficiary_id_hash, pays_at, payout_id, beneficiary_hash)
    select 'acme', int4send(n), now(), payout_id, int4send(n) from numbered
  ), files as (
    insert into files (file, merchant_id, batch_id) select n, 'acme', payout_id from numbered
  ), messages as (
    insert into outbox (shard, topic, keys, event_ids, types, contents, headers, bytes)
    select n % ${'shards'}::int, 'events', array['acme:' || payout_id], array[gen_random_uuid()], '{event}',
      array[''::bytea], array[null::jsonb], 0
    from numbered
  )
  insert into payouts (merchant_id, payout_id, order_no, amount, currency, priority, state, version, ready, deadline,
                       due_at, utr)
  select 'acme', payout_id, 'O' || n, 10000, 'INR', 0, case when queued then 'queued' else 'paid' end, 1, queued,
         now() + interval '3 days', case when queued then now() end, case when not queued then 'u' || n end
  from numbered`

/**
 * Payins of the same merchant, each with an entry in the history and an anomaly: paid and acknowledged, or from
 * `openFrom` open and due.
 */
const fillPayins = sql<{ first: number; last: number; openFrom: number }>`
  with numbered as (
    select n, 'C' || n as payin_id, n >= ${'openFrom'} as open from generate_series(${'first'}::int, ${'last'}::int) n
  ), recorded as (
    insert into history (merchant_id, payin_id, to_state, source) select 'acme', payin_id, 'open', 'CREATE' from numbered
  ), odd as (
    insert into anomalies (merchant_id, anomaly_id, order_no, kind, detail, source, acknowledged_by,
                           acknowledged_reason, acknowledged_at)
    select 'acme', gen_random_uuid(), payin_id, 'contradiction', '', 'CALLBACK', case when not open then 'asha' end,
           case when not open then '' end, case when not open then now() end
    from numbered
  )
  insert into payins (merchant_id, payin_id, fingerprint, amount, currency, state, version, pay_order_id, due_at,
                      expires_at, utr)
  select 'acme', payin_id, '', 10000, 'INR', case when open then 'open' else 'paid' end, 2, 'O' || payin_id,
         case when open then now() end, now() + interval '3 days', case when not open then 'u' || n end
  from numbered`

const analyze = sql<object>`analyze`

/** As at the beginning of a new month. */
const forgetNextMonth = sql<object>`
  do $$ begin
    execute format('drop table %I', 'history_' || to_char(now() at time zone 'UTC' + interval '1 month', 'YYYY_MM'));
  end $$`
const keepHistory = sql<object>`select keep_history(null)`
const tablesThatCountMerchants = sql<object, { table: string }>`
  select t.relname as table
  from pg_attribute a join pg_class t on t.oid = a.attrelid
  where a.attname = 'merchant_id' and t.relkind = 'r' and t.relnamespace = 'public'::regnamespace
    and t.relname <> 'merchants' and a.attoptions is null`

/** Rows that scans have found by index or table so far, including those that a filter dropped. */
const rowsFound = sql<object, { rows: bigint }>`
  select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as rows
  from pg_class where relnamespace = 'public'::regnamespace`

async function rowsRead(db: Database, { run }: Hot): Promise<bigint> {
  return db.transaction('test', async (tx) => {
    const found = async () => ((await tx.run(rowsFound, {})) as [{ rows: bigint }])[0].rows
    const before = await found()
    await run(tx)
    return (await found()) - before
  })
}

/** `most`: the rows it may read if earlier uses have each left some to compare with. */
type Hot = { name: string; most?: number; run: (on: Connection) => Promise<unknown> }
const hot = <Params, Row>(name: string, statement: Sql<Params, Row>, params: Params): Hot => ({
  name,
  run: (on) => on.run(statement, params),
})

const each = <T>(element: (n: number) => T): T[] => Array.from({ length: WANTED }, (_, i) => element(100 + i))
/** As `int4send` in `fill`. */
const hashOf = (n: number): Buffer => Buffer.of(n >> 24, n >> 16, n >> 8, n)
const merchantIds = each(() => 'acme')
const payoutIds = each((n) => `p${n}`)
const payinIds = each((n) => `C${n}`)
const payinKeys = payinIds.map((payinId) => ({ merchantId: 'acme', payinId }))
const payoutKeys = payoutIds.map((payoutId) => ({ merchantId: 'acme', payoutId }))
const PAYOUT = sentPayout({
  ...{ payoutId: 'p1', batchId: null, orderNo: 'O1', amount: paise(10_000n), state: 'paid', version: 2 },
  ...{ accountId: 'one', agentpayOrderId: 'A1', fee: paise(0n) },
})

/** Other rows each time, of one batch. */
let paysAt = 0
const payments = (but: (n: number) => Partial<Payment>): Payment[] =>
  each((n) => ({
    ...{ merchantId: 'acme', payoutId: `p${n}`, batch: 'november', amount: 10_000n, paysAt: ++paysAt },
    ...{ payeeHash: hashOf(n), beneficiaryHash: hashOf(n), beneficiaryIdHash: null, file: 1n, rowNumber: n },
    ...{ periodFrom: null, periodTo: null, askedFrom: null, askedTo: null, askedAt: null, lastFrom: null },
    ...{ changesWanted: false, ...but(n) },
  }))

/**
 * What stages and scrapes run repeatedly, reports about one payin, and statements that find rows by more than the
 * only key of a small table.
 */
const HOT: Hot[] = [
  hot('lockById', lockById, { payouts: payoutKeys }),
  hot('lockByOrder', lockByOrder, { orders: each((n) => ({ merchantId: 'acme', mchOrderNo: `O${n}` })) }),
  hot('storeTransitions', storeTransitions, {
    payouts: each((n) => ({ ...PAYOUT, payoutId: `p${n}`, lastChangeAt: 0 })),
    history: each((n) => ({
      ...{ merchantId: 'acme', payoutId: `p${n}`, version: 2, fromState: 'processing', toState: 'paid' },
      ...{ reason: null, source: 'CALLBACK', exchange: null, publishedAt: 0 },
    })),
    messages: each((n) => ({
      ...{ shard: 0, topic: 'payout.events', key: `acme:p${n}`, eventId: randomUUID(), type: 'test' },
      ...{ value: Buffer.from('1'), headers: null, merchantId: 'acme', payoutId: `p${n}` },
    })),
  }),
  hot('countRepeatedOfPayins', countRepeatedOfPayins, {
    repeated: each((n) => ({
      ...{ merchantId: 'acme', id: `C${n}`, toState: 'open', source: 'CREATE', exchange: '{}' },
      ...{ stays: false, times: 1 },
    })),
  }),
  hot('countUnmovedOfPayins', countUnmovedOfPayins, {
    about: each((n) => ({ merchantId: 'acme', id: `C${n}` })),
    most: WANTED,
  }),
  hot('otherPayoutsWithUtrs', otherPayoutsWithUtrs, {
    named: each((n) => ({ merchantId: 'acme', id: `p${n + 1_000_000}` })),
    ...{ utrs: each((n) => `U${n}`), limit: WANTED },
  }),
  hot('otherPayinsWithUtrs', otherPayinsWithUtrs, {
    named: each((n) => ({ merchantId: 'acme', id: `C${n + 1_000_000}` })),
    ...{ utrs: each((n) => `U${n}`), limit: WANTED },
  }),
  hot('takenIn', takenIn, { wanted: payoutKeys }),
  hot('ownersOf', ownersOf, { files: each((n) => ({ file: BigInt(n) })) }),
  {
    name: 'keepAndCompare, for duplicates',
    // Rows by time and in its batch, under each of two hashes, with the payout of each. One of two plans for 400 rows
    // reads some more.
    most: 6 * READ_AT_MOST * USES,
    run: (on) =>
      on.run(keepAndCompare, {
        payments: payments((n) => ({
          // As earlier payments have it.
          beneficiaryHash: hashOf(n + 1),
          ...{ periodFrom: 0, periodTo: Date.UTC(2100, 0), lastFrom: 0 },
        })),
      }),
  },
  {
    name: 'keepAndCompare, for duplicates of what was to be paid in earlier periods',
    // The rows of each earlier use, with the payout, batch, attempts and queries of each, twice.
    most: 12 * READ_AT_MOST * USES,
    run: (on) => {
      const now = Date.now()
      return on.run(keepAndCompare, {
        payments: payments((n) => ({
          ...{ batch: `:p${n}`, periodFrom: now, periodTo: Date.UTC(2100, 0), lastFrom: now },
        })),
      })
    },
  },
  {
    name: 'keepAndCompare, for changed beneficiaries',
    most: READ_AT_MOST * USES,
    run: (on) =>
      on.run(keepAndCompare, {
        payments: payments((n) => ({ beneficiaryIdHash: hashOf(n), changesWanted: true })),
      }),
  },
  {
    // Payouts with which nothing else compares itself: their own rows, again for each search.
    ...hot('otherPaymentsOf', otherPaymentsOf, {
      merchantId: 'acme',
      wanted: each((n) => ({ payoutId: `p${n + 200}`, periodFrom: 0, periodTo: Date.UTC(2100, 0) })),
    }),
    most: 3 * READ_AT_MOST,
  },
  hot('merchantsWithWork', merchantsWithWork, {}),
  hot('traffic', traffic, { merchantId: 'acme' }),
  hot('lockCandidates', lockCandidates, { merchantId: 'acme', limit: WANTED, allBut: [], neverSent: false }),
  hot('attemptsMade', attemptsMade, { answered: payoutKeys.map((key) => ({ ...key, attempt: 1 })) }),
  hot('beforeAsking', balanceWatermark, { merchantId: 'acme' }),
  hot('dueTimers', dueTimers, { ofEach: WANTED }),
  hot('dueQuestions', dueQuestions, { limits: [{ merchantId: 'acme', most: WANTED }] }),
  hot('lockDue', lockDue, { merchantId: 'acme', payoutIds }),
  hot('nextMessages', nextMessages, {
    owner: 'me',
    but: [],
    limit: Math.floor(WANTED / SHARDS),
    bytes: 1_000_000,
  }),
  hot('forget', deletePublished, {
    topic: 'events',
    read: each((n) => ({ shard: n % SHARDS, position: BigInt(n), eventIds: randomUUID() })),
  }),
  hot('ledgerGauges', ledgerGauges, { shards: SHARDS, countUpTo: WANTED }),
  hot('inReview', inReview, {}),
  hot('payoutsInReview', payoutsInReview, { merchantId: 'acme', limit: WANTED }),
  hot('anomaliesOf', anomaliesOf, { merchantId: 'acme', limit: WANTED }),
  ...(['payouts', 'payins'] as const).map((what) =>
    hot(`anomaliesBeside of ${what}`, anomaliesBeside, {
      anomalies: each((n) => ({
        ...{ merchantId: 'acme', anomalyId: randomUUID(), kind: 'contradiction' as const },
        ...(what === 'payouts' ? { payoutId: `p${n}`, orderNo: null } : { payoutId: null, orderNo: `C${n}` }),
      })),
      beyond: 'beyond',
    }),
  ),
  hot('reportedContradictions', reportedContradictions, {
    ...{ merchantId: 'acme', payoutId: 'p100' },
    against: saidAgainst('failed'),
  }),
  hot('payoutsAwaitingKey', payoutsAwaitingKey, { merchantId: '', payoutId: '', limit: WANTED }),
  hot('lockAwaitingKey', lockAwaitingKey, { merchantId: 'acme', payoutIds }),
  hot('awaitingKey', awaitingKey, {}),
  hot('lockPayins', lockPayins, { payins: payinKeys }),
  hot('updatePayins', updatePayins, {
    payins: each((n) => ({
      ...{ merchantId: 'acme', payinId: `C${n}`, accountId: 'one', amount: paise(10_000n), currency: 'INR' },
      ...{
        state: 'paid' as const,
        reason: null,
        version: 3,
        payOrderId: `O${n}`,
        checkout: null,
        utr: null,
        paidAt: null,
      },
      ...{
        unknownSince: null,
        queries: 0,
        notFoundCount: 0,
        askedAnew: false,
        orderShown: false,
        askedAt: null,
        dueAt: null,
        traceparent: null,
      },
      ...{ createdAt: 0, expiresAt: 0 },
    })),
  }),
  hot('endedLeases', endedLeases, { ofEach: WANTED }),
  hot('duePayinQuestions', duePayinQuestions, { limits: [{ merchantId: 'acme', most: WANTED }] }),
  hot('overdueOfOthers', overdueOfOthers, { merchantIds: ['bolt'], ofEach: WANTED, overdueMs: 3_600_000 }),
  hot('lockDuePayins', lockDuePayins, { merchantId: 'acme', payinIds }),
  hot('payinsBeside', payinsBeside, { merchantId: 'acme', payinId: 'C1', accountId: 'here' }),
  hot('payinHistory', payinHistory, { merchantId: 'acme', payinId: 'C100' }),
  hot('payinAnomalies', payinAnomalies, { merchantId: 'acme', payinId: 'C100' }),
  hot('wakeDispatch', wakeDispatch, { merchantIds }),
  {
    ...hot('notOwn', notOwn, {
      published: payoutKeys.map((key) => ({
        ...key,
        version: 2,
        fromState: null,
        toState: 'paid' as const,
        at: 0,
      })),
    }),
    most: READ_AT_MOST * USES,
  },
  hot('unlisted', unlisted, { payouts: payoutKeys }),
  hot('takePublished', takePublished, { payouts: payoutKeys, lacked: true }),
  hot('keepPaidAt', keepPaidAt, { paid: each((n) => ({ merchantId: 'acme', payoutId: `p${n}`, at: 0 })) }),
]

describe('a statement planned on a young ledger reads no more rows when that has grown', () => {
  const young = {
    'an empty ledger without statistics': async () => undefined,
    'a ledger of one payout and one payin with statistics': async (db: Database) => {
      await db.run(fill, { first: 0, last: 0, queuedFrom: 1, shards: SHARDS })
      await db.run(fillPayins, { first: 0, last: 0, openFrom: 1 })
      await db.run(analyze, {})
    },
  }
  for (const [ledger, prepare] of Object.entries(young)) {
    for (const payouts of [400, 20_000]) {
      test(`${ledger}, and now has ${payouts} of each`, async (t) => {
        // A reused database has statistics of its former contents.
        const { url } = await freshDatabase(t, { migrated: false })
        await migrate(url, silentLogger)
        const db = connectDatabase({ url, connections: 1, applicationName: 'payoutd-test' })
        t.after(() => db.close())
        await db.run(openLedger, { shards: SHARDS })
        await prepare(db)
        for (const { run } of HOT) for (let use = 0; use < USES; use++) await run(db)
        await db.run(fill, { first: 1, last: payouts, queuedFrom: payouts / 2, shards: SHARDS })
        await db.run(fillPayins, { first: 1, last: payouts, openFrom: payouts / 2 })

        const planned = connectDatabase({ url, connections: 1, applicationName: 'payoutd-test' })
        t.after(() => planned.close())
        const tooMuch: string[] = []
        for (const statement of HOT) {
          const most = statement.most ?? READ_AT_MOST
          const read = await rowsRead(db, statement)
          if (read > most) tooMuch.push(`${statement.name} read ${read} rows`)
          const readAnew = await rowsRead(planned, statement)
          if (readAnew > most)
            tooMuch.push(`${statement.name}, planned when it had grown, read ${readAnew} rows`)
        }
        assert.deepEqual(tooMuch, [])
      })
    }
  }
})

const failWithAnomalies = sql<{ payoutIds: string[]; anomalies: number }>`
  with failed as (update payouts set state = 'failed' where payout_id = any(${'payoutIds'}::text[]) returning payout_id)
  insert into anomalies (merchant_id, anomaly_id, payout_id, kind, detail, source, acknowledged_by, acknowledged_reason,
                         acknowledged_at)
  select 'acme', gen_random_uuid(), payout_id, 'contradiction', '', 'CALLBACK', 'asha', '', now()
  from failed, generate_series(1, ${'anomalies'}::int)`

test('a comparison with failed payouts reads none of their evidence', async (t) => {
  const { db } = await freshDatabase(t)
  await db.run(openLedger, { shards: SHARDS })
  await db.run(fill, { first: 1, last: 400, queuedFrom: 401, shards: SHARDS })
  await db.run(failWithAnomalies, { payoutIds, anomalies: 60 })
  await db.run(analyze, {})
  const statement = HOT.find(({ name }) => name === 'keepAndCompare, for duplicates') as Hot
  const read = await rowsRead(db, statement)
  assert.ok(read <= 4 * READ_AT_MOST, `it read ${read} rows`)
})

test('every table tells the planner that merchants are few', async (t) => {
  const db = connectDatabase({
    url: (await freshDatabase(t)).url,
    connections: 1,
    applicationName: 'payoutd-test',
  })
  t.after(() => db.close())
  await db.run(forgetNextMonth, {})
  await db.run(keepHistory, {})
  assert.deepEqual(await db.run(tablesThatCountMerchants, {}), [])
})
