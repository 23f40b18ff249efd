import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { payoutsOf, standAt, testLedger } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { fencedMerchants } from '../../ledger/ledger.ts'
import { lockForCancels } from '../../ledger/sql/cancels.ts'
import { cancelPayouts } from '../../operators/cancel-payouts.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { connectDatabase, type Database, sql, type Transaction } from '../../platform/postgres/postgres.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { Intake, type IntakeDeps } from './intake.ts'
import { takeTurns } from './sql/holds.ts'
import { boundLockWaits } from './sql/waiting.ts'
import { LedgerRewound } from './store-batch.ts'

const PARTITIONS = 4

const positions = sql<
  object,
  { nextOffset: bigint }
>`select next_offset from intake_offsets order by partition`
const waiting = sql<
  object,
  { merchantId: string; partition: number }
>`select merchant_id, partition from waiting_commands`
const refuseOne = sql<object>`alter table payouts add constraint odd check (payout_id <> 'p2')`
const setBack = sql<object>`update intake_offsets set next_offset = 5 where partition = 2`

/** The ledger has read 10 records of each partition. */
async function world(t: TestContext) {
  const { config, ledger, codec } = await testLedger(t)
  const topic = ledger.topics.commands
  const acme = config.merchants.get('acme') ?? assert.fail('acme is not in the settings')
  const requested = codec.encoder<object>(topic, 'in.payoutd.PayoutRequested')
  for (let partition = 0; partition < PARTITIONS; partition++)
    await standAt(ledger, partition, { offset: 10n, logId: null })
  let transactions = 0
  const db: Database = {
    ...ledger.db,
    transaction: (name, work) => {
      if (name === 'take in commands') transactions++
      return ledger.db.transaction(name, work)
    },
  }
  const deps = (by: Database = db): IntakeDeps => ({
    ledger: { ...ledger, db: by },
    terms: new Map(['acme', 'bolt'].map((merchantId) => [merchantId, { ...acme, merchantId }])),
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (value) => codec.decode(value),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
  })
  const intake = new Intake(deps())
  const process = (partition: number, fields: object = {}, by = intake) =>
    by.process({
      ...{ topic, partition, stored: { offset: 10n, logId: null }, nextOffset: 11n },
      records: [
        {
          ...{ offset: 10n, key: null, headers: {}, timestamp: 0 },
          value: requested({ ...command(`p${partition}`), ...fields }),
        },
      ],
    })
  return {
    ...{ db: ledger.db, ledger, process },
    /** One command in each partition, all at once; returns the errors. */
    async all(by = intake, fieldsOf: (partition: number) => object = () => ({})) {
      const each = Array.from({ length: PARTITIONS }, (_, i) => process(i, fieldsOf(i), by))
      return (await Promise.allSettled(each)).map((one) => (one.status === 'rejected' ? one.reason : null))
    },
    intakeOn: (by: Database) => new Intake(deps(by)),
    /** An intake that begins each of its transactions, by their number, after what `before` returns. */
    intakeAfter(before: (nth: number) => Promise<unknown> | undefined) {
      let begun = 0
      const transaction: Database['transaction'] = async (name, work) => {
        await before(++begun)
        return ledger.db.transaction(name, work)
      }
      return { intake: new Intake(deps({ ...ledger.db, transaction })), begun: () => begun }
    },
    transactions: () => transactions,
    states: async () => (await payoutsOf(ledger)).map(({ payoutId, state }) => `${payoutId} ${state}`).sort(),
    positions: async () => (await ledger.db.run(positions, {})).map(({ nextOffset }) => Number(nextOffset)),
  }
}

const QUEUED = ['p0 queued', 'p1 queued', 'p2 queued', 'p3 queued']
const STORED = Array(PARTITIONS).fill(null)

test('what comes from several partitions at the same time is stored in one transaction', async (t) => {
  const { all, transactions, states, positions } = await world(t)
  assert.deepEqual(await all(), STORED)
  assert.deepEqual(await states(), QUEUED)
  assert.deepEqual(await positions(), [11, 11, 11, 11])
  assert.equal(transactions(), 1)
})

test('what comes while a transaction runs waits for the next one, together', async (t) => {
  const { process, transactions, states, intakeAfter } = await world(t)
  const over = Promise.withResolvers<void>()
  const { intake: slow, begun } = intakeAfter(() => over.promise)
  const first = process(0, {}, slow)
  while (begun() === 0) await new Promise(setImmediate)
  const others = [1, 2, 3].map((partition) => process(partition, {}, slow))
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  assert.equal(begun(), 1)
  over.resolve()
  await Promise.all([first, ...others])
  assert.deepEqual([begun(), transactions(), await states()], [2, 0, QUEUED])
})

test('a position that was set back fences the merchants, and holds up no other partition', async (t) => {
  const { all, ledger, states, positions } = await world(t)
  await ledger.db.run(setBack, {})
  const errors = await all()
  assert.deepEqual(
    errors.map((error) => error instanceof LedgerRewound),
    [false, false, true, false],
  )
  assert.deepEqual([...(await fencedMerchants(ledger.db))].sort(), ['acme', 'bolt'])
  assert.deepEqual(await states(), ['p0 queued', 'p1 queued', 'p3 queued'])
  assert.deepEqual(await positions(), [11, 11, 5, 11])
})

test('a record that the database refuses is a dead letter, and the other partitions are stored', async (t) => {
  const { all, db, states, positions } = await world(t)
  await db.run(refuseOne, {})
  assert.deepEqual(await all(), STORED)
  assert.deepEqual(await states(), ['p0 queued', 'p1 queued', 'p3 queued'])
  assert.deepEqual(await positions(), [11, 11, 11, 11])
})

/** Returns a function that ends the holder's transaction. */
async function hold(db: Database, take: (tx: Transaction) => Promise<unknown>): Promise<() => Promise<void>> {
  const taken = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const held = db.transaction('test', async (tx) => {
    await take(tx)
    taken.resolve()
    await over.promise
  })
  await taken.promise
  return async () => {
    over.resolve()
    await held
  }
}

const locksOfBolt = (tx: Transaction) => tx.run(lockForCancels, { merchantIds: ['bolt'] })

test('commands of a merchant whose locks are held wait, and those of others in other partitions are stored by one more transaction', async (t) => {
  const { all, db, states, positions, transactions } = await world(t)
  const letGo = await hold(db, locksOfBolt)
  const errors = await all(undefined, (partition) => (partition === 2 ? { merchantId: 'bolt' } : {}))
  await letGo()
  assert.deepEqual(errors, STORED)
  assert.deepEqual(await states(), ['p0 queued', 'p1 queued', 'p3 queued'])
  assert.deepEqual(await db.run(waiting, {}), [{ merchantId: 'bolt', partition: 2 }])
  assert.deepEqual(await positions(), [11, 11, 11, 11])
  assert.equal(transactions(), 2)
})

test('once it has waited a moment for the locks of a merchant, a transaction waits on without any turn', async (t) => {
  const { all, db, transactions } = await world(t)
  const letGo = await hold(db, locksOfBolt)
  const storing = all(undefined, (partition) => (partition === 2 ? { merchantId: 'bolt' } : {}))
  await eventually(
    'it waits in its second transaction',
    async () => transactions() === 2 && ((await db.run(waitForLocks, {}))[0]?.count ?? 0) > 0,
  )
  const turns = db.transaction('test', async (tx) => {
    await tx.run(boundLockWaits, { ms: '1' })
    await tx.run(takeTurns, { merchantIds: ['acme', 'bolt'] })
  })
  const outcome = await turns.then(
    () => 'taken',
    (error) => error.message,
  )
  await letGo()
  assert.equal(outcome, 'taken')
  assert.deepEqual(await storing, STORED)
})

test('while it waits for the turn of a merchant, a person who cancels payouts of others does not wait for it', async (t) => {
  const { all, db, ledger } = await world(t)
  const letGo = await hold(db, (tx) => tx.run(takeTurns, { merchantIds: ['bolt'] }))
  const storing = all(undefined, (partition) => (partition === 2 ? { merchantId: 'bolt' } : {}))
  await eventually('it waits', async () => ((await db.run(waitForLocks, {}))[0]?.count ?? 0) > 0)
  const cancelling = cancelPayouts(
    { merchantId: 'acme', by: 'asha', reason: 'left', payoutIds: ['p1'] },
    ledger,
  )
  const first = await Promise.race([cancelling, delay(5_000, 'it waits')])
  await letGo()
  assert.deepEqual(first, [{ payoutId: 'p1', kind: 'remembered' }])
  assert.deepEqual(await storing, STORED)
})

const waitForLocks = sql<object, { count: number }>`
  select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

test('another transaction of intake that has the turn of a merchant is waited for, for longer than locks, and nothing is set aside', async (t) => {
  const { all, db, states, transactions } = await world(t)
  const taken = Promise.withResolvers<void>()
  const held = db.transaction('test', async (tx) => {
    await tx.run(takeTurns, { merchantIds: ['bolt'] })
    taken.resolve()
    await delay(1_300)
  })
  await taken.promise
  const errors = await all(undefined, (partition) => (partition === 2 ? { merchantId: 'bolt' } : {}))
  await held
  assert.deepEqual(errors, STORED)
  assert.deepEqual(await states(), ['p0 queued', 'p1 queued', 'p2 queued', 'p3 queued'])
  assert.deepEqual(await db.run(waiting, {}), [])
  assert.equal(transactions(), 1)
})

test('what the database refuses of one partition with an error of its own is tried again alone, and the others are stored', async (t) => {
  const { all, db, intakeOn, states, positions } = await world(t)
  const denied = Object.assign(new pg.DatabaseError('permission denied', 0, 'error'), { code: '42501' })
  const refusing = intakeOn({
    ...db,
    transaction: (name, work) =>
      db.transaction(name, async (tx) =>
        work({
          ...tx,
          run: async (statement, params) => {
            if (
              JSON.stringify(params, (_, value) =>
                String(value) === 'p2' ? 'p2' : typeof value === 'bigint' ? 0 : value,
              ).includes('"p2"')
            )
              throw denied
            return tx.run(statement, params)
          },
        }),
      ),
  })
  const errors = await all(refusing)
  assert.deepEqual(errors, [null, null, denied, null])
  assert.deepEqual(await states(), ['p0 queued', 'p1 queued', 'p3 queued'])
  assert.deepEqual(await positions(), [11, 11, 10, 11])
})

test('a slice that takes long holds up no other for longer than a moment', async (t) => {
  const { process, intakeAfter, states } = await world(t)
  const over = Promise.withResolvers<void>()
  const { intake: slow, begun } = intakeAfter((nth) => (nth === 1 ? over.promise : undefined))
  const first = process(0, {}, slow)
  while (begun() === 0) await new Promise(setImmediate)
  await Promise.all([1, 2, 3].map((partition) => process(partition, {}, slow)))
  assert.deepEqual(await states(), ['p1 queued', 'p2 queued', 'p3 queued'])
  over.resolve()
  await first
})

test('two slices that fail, and then take long alone, hold up no third', async (t) => {
  const { process, db, intakeAfter, states } = await world(t)
  const over = Promise.withResolvers<void>()
  const { intake: slow, begun } = intakeAfter((nth) => {
    if (nth === 1 || nth === 3) return db.run(sql<object>`select 1 / 0`, {})
    return nth <= 4 ? over.promise : undefined
  })
  const both: Promise<void>[] = []
  for (const partition of [0, 1]) {
    both.push(process(partition, {}, slow))
    while (begun() < 2 * both.length) await new Promise(setImmediate)
  }
  await process(2, {}, slow)
  assert.deepEqual(await states(), ['p2 queued'])
  over.resolve()
  await Promise.all(both)
})

test('while the database does not answer, each partition is told, and none is stored', async (t) => {
  const { all, db, intakeOn, positions } = await world(t)
  const gone = connectDatabase({
    url: 'postgres://nobody@127.0.0.1:9/none',
    applicationName: 'test',
    connections: 1,
  })
  t.after(() => gone.close())
  let tries = 0
  const away = intakeOn({
    ...db,
    transaction: (name, work) => {
      tries++
      return gone.transaction(name, work)
    },
  })
  assert.deepEqual(
    (await all(away)).map((error) => error?.code),
    Array(PARTITIONS).fill('ECONNREFUSED'),
  )
  assert.equal(tries, 1)
  assert.deepEqual(await positions(), [10, 10, 10, 10])
})

test('one command that comes from two partitions at the same time is one payout', async (t) => {
  const { all, states, positions } = await world(t)
  assert.deepEqual(await all(undefined, () => ({ payoutId: 'p' })), STORED)
  assert.deepEqual(await states(), ['p queued'])
  assert.deepEqual(await positions(), [11, 11, 11, 11])
})
