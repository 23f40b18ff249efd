import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ACCOUNT, payoutsOf, setBalance, standAt, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import type { Merchant } from '../../config/merchants.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { intakeBacklog } from '../../ledger/intake-backlog.ts'
import { lockForCancels } from '../../ledger/sql/cancels.ts'
import { cancelBatch } from '../../operators/cancel-batch.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { type Database, sql, type Transaction } from '../../platform/postgres/postgres.ts'
import { Rounds } from '../../platform/postgres/rounds.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { claim } from '../dispatch/claim.ts'
import { WARM } from '../dispatch/merchant-gate.ts'
import { Intake, type IntakeDeps } from './intake.ts'
import { lockStanding } from './sql/offsets.ts'
import { boundLockWaits, firstWaiting, keepWaiting } from './sql/waiting.ts'
import { processWaiting, type WaitingDeps } from './waiting-commands.ts'

/** Intake of two merchants, acme and bolt, and an upstream. */
async function intake(t: TestContext) {
  // Ends in reverse order: the database can be dropped once no transaction holds locks in it.
  const ends = new AsyncDisposableStack()
  t.after(() => ends.disposeAsync())
  const { config, ledger, codec } = await testLedger({ after: (drop) => ends.defer(drop) })
  const topic = ledger.topics.commands
  await standAt(ledger, 0, { offset: 0n, logId: 'L1' })
  const acme = config.merchants.get('acme') as Merchant
  const deps: IntakeDeps & WaitingDeps = {
    ledger,
    terms: new Map(['acme', 'bolt'].map((merchantId) => [merchantId, { ...acme, merchantId }])),
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (value) => codec.decode(value),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
    rounds: new Rounds(),
    stuckSince: new Map(),
  }
  const encoder = (name: string) => codec.encoder<object>(topic, `in.payoutd.${name}`)
  const [requested, cancelled] = [encoder('PayoutRequested'), encoder('PayoutCancelRequested')]
  let offset = 0n
  return {
    ledger,
    config,
    deps,
    /** Holds what `take` locks, like an open transaction, until the returned function is called. */
    holding: async (take: (tx: Transaction) => Promise<unknown>) => {
      const taken = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const held = ledger.db.transaction('test', async (tx) => {
        await take(tx)
        taken.resolve()
        await over.promise
      })
      const letGo = async () => {
        over.resolve()
        await held
      }
      ends.defer(letGo)
      await taken.promise
      return letGo
    },
    pay: (merchantId: string, payoutId: string, fields: object = {}) =>
      requested({ ...command(payoutId), merchantId, ...fields }),
    cancel: (merchantId: string, payoutId: string) =>
      cancelled({ merchantId, payoutId, reason: 'a mistake', requestedBy: 'asha' }),
    take: async (...values: Buffer[]) => {
      const stored = { offset, logId: 'L1' }
      const records = values.map((value, i) => ({
        offset: offset + BigInt(i),
        key: Buffer.from('k'),
        value,
        headers: {},
        timestamp: 0,
      }))
      offset += BigInt(values.length)
      await new Intake(deps).process({ topic, partition: 0, records, nextOffset: offset, stored })
    },
    behind: (merchantId = 'acme', high = offset, db: Database = ledger.db) => {
      const ends = [{ partition: 0, id: 'L1', low: 0n, high }]
      return intakeBacklog({ topic, ends, merchantIds: [merchantId] }, db)
    },
    states: async () =>
      (await payoutsOf(ledger)).map(({ payoutId, state, reason }) =>
        [payoutId, state, ...(reason === null ? [] : [reason])].join(' '),
      ),
  }
}

const lockMerchant = sql<object>`
  insert into merchants (merchant_id, settings_hash) values ('acme', '') on conflict (merchant_id) do update set warm_up = 0`
const lockRow = sql<object>`select from merchants where merchant_id = 'acme' for update`
const cancelling = sql<object>`
  create function cancelling() returns trigger language plpgsql as $$
  begin
    if new.merchant_id = 'acme' then raise exception 'canceling statement' using errcode = '57014'; end if;
    return new;
  end $$`
const cancelsInserts = sql<object>`create trigger odd before insert on payouts for each row execute function cancelling()`
const cancelsNoMore = sql<object>`drop trigger odd on payouts`
const amounts = sql<object, { amount: bigint }>`select amount from payouts`
const resealFirst = sql<object>`
  update waiting_commands set sealed = sealed where position = (select min(position) from waiting_commands)`
const waiters = sql<object>`
  select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const warm = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const lockPayoutA2 = sql<object>`select from payouts where payout_id = 'a2' for update`
const lockPayoutA1 = sql<object>`select from payouts where payout_id = 'a1' for update`
const lockPayout = sql<object>`select from payouts where merchant_id = 'acme' for update`

test('a command that intake sets aside while the backlog is counted is in it', async (t) => {
  const { ledger, holding, take, pay, behind } = await intake(t)
  await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  let isFirst = true
  const db: Database = {
    ...ledger.db,
    async run(statement, params) {
      const rows = await ledger.db.run(statement, params)
      if (isFirst) {
        isFirst = false
        await take(pay('acme', 'a1'))
      }
      return rows
    },
  }
  assert.ok((await behind('acme', 1n, db)) > 0n)
})

test('while an operator cancels a batch, commands of that merchant wait in their order, and all others go on', async (t) => {
  const { deps, ledger, holding, take, pay, cancel, states, behind } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1'), pay('bolt', 'b1'), cancel('acme', 'a1'), pay('bolt', 'b2'))
  assert.deepEqual([await states(), await behind()], [['b1 queued', 'b2 queued'], 2n])
  assert.equal(await behind('bolt'), 0n)
  assert.equal(await processWaiting(deps), 1_000)
  await take(pay('bolt', 'b3'))
  assert.deepEqual([await states(), await behind()], [['b1 queued', 'b2 queued', 'b3 queued'], 2n])

  await letGo()
  await cancelBatch({ merchantId: 'acme', batchId: 'december', by: 'asha', reason: 'wrong file' }, ledger)
  await take(pay('acme', 'a2'), pay('acme', 'a3', { batchId: 'december' }), pay('bolt', 'b4'))
  assert.deepEqual(await states(), ['b1 queued', 'b2 queued', 'b3 queued', 'b4 queued'])
  await processWaiting(deps)
  assert.deepEqual((await states()).slice(0, 3), [
    'a1 cancelled cancelled',
    'a2 queued',
    'a3 cancelled cancelled',
  ])
  assert.equal(await behind(), 0n)
  await take(pay('acme', 'a4'))
  assert.equal((await states())[3], 'a4 queued')
  const { values } = await deps.counted.get()
  assert.equal(values.find(({ labels }) => labels.outcome === 'waiting')?.value, 4)
})

test('commands that waited are stored once the lock is free, however far the database is', async (t) => {
  const { deps, ledger, holding, take, pay, cancel, states } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1'), cancel('acme', 'a1'))
  await letGo()
  const { db } = ledger
  const far: Database = {
    ...db,
    transaction: (name, work) =>
      db.transaction(name, (tx) =>
        work({
          ...tx,
          run: async (...statement) => {
            await delay(110)
            return tx.run(...statement)
          },
        }),
      ),
  }
  await processWaiting({ ...deps, ledger: { ...ledger, db: far } })
  assert.deepEqual(await states(), ['a1 cancelled cancelled'])
})

test('while a merchant’s row is locked, its refused commands wait, and all others go on', async (t) => {
  const { deps, ledger, holding, take, pay, states } = await intake(t)
  await ledger.db.run(lockMerchant, {})
  const letGo = await holding((tx) => tx.run(lockRow, {}))
  await take(
    pay('acme', 'a1', { currency: 'USD' }),
    pay('bolt', 'b1', { currency: 'USD' }),
    pay('bolt', 'b2'),
  )
  assert.deepEqual(await states(), ['b1 rejected faults', 'b2 queued'])
  await letGo()
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 rejected faults', 'b1 rejected faults', 'b2 queued'])
})

test('while statements about one merchant are cancelled, its commands wait, and all others go on', async (t) => {
  const { deps, ledger, take, pay, states } = await intake(t)
  await ledger.db.run(cancelling, {})
  await ledger.db.run(cancelsInserts, {})
  await take(pay('acme', 'a1'), pay('bolt', 'b1'), pay('bolt', 'b2'))
  assert.deepEqual(await states(), ['b1 queued', 'b2 queued'])
  await processWaiting(deps)
  await ledger.db.run(cancelsNoMore, {})
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 queued', 'b1 queued', 'b2 queued'])
})

test('while a payout is locked, its cancellation waits, and all others go on', async (t) => {
  const { deps, holding, take, pay, cancel, states } = await intake(t)
  await take(pay('acme', 'a1'), pay('bolt', 'b1'))
  const letGo = await holding((tx) => tx.run(lockPayout, {}))
  await take(cancel('acme', 'a1'), cancel('bolt', 'b1'), pay('bolt', 'b2'))
  assert.deepEqual(await states(), ['a1 queued', 'b1 cancelled cancelled', 'b2 queued'])
  await letGo()
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 cancelled cancelled', 'b1 cancelled cancelled', 'b2 queued'])
})

test('while a payout is locked, the cancellations of all others of its merchant stop them, also behind commands that wait', async (t) => {
  const { deps, holding, take, pay, cancel, states } = await intake(t)
  await take(...['a1', 'a2', 'a3'].map((payoutId) => pay('acme', payoutId)))
  const letGo = await holding((tx) => tx.run(lockPayoutA1, {}))
  await take(cancel('acme', 'a1'), cancel('acme', 'a2'), pay('acme', 'a4'))
  await take(cancel('acme', 'a3'), cancel('acme', 'a4'))
  assert.deepEqual(await states(), ['a1 queued', 'a2 cancelled cancelled', 'a3 cancelled cancelled'])
  await letGo()
  await processWaiting(deps)
  assert.deepEqual(
    await states(),
    ['a1', 'a2', 'a3', 'a4'].map((payoutId) => `${payoutId} cancelled cancelled`),
  )
})

test('a cancellation that waits keeps its payout from being claimed, whatever it waits for', async (t) => {
  const { deps, ledger, config, holding, take, pay, cancel, states } = await intake(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 500n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  await ledger.db.run(warm, { warmUp: WARM })
  const claimed = async () => {
    const options = {
      ...{ merchantId: 'acme', atMost: 64, owner: 'me', leaseMs: 15_000, account: ACCOUNT },
      ...{ limits: { maxInFlight: 64, ratePerSecond: null }, sealing: config.sealing },
      fingerprintKey: config.fingerprintKey,
    }
    return (await claim(ledger, options)).wave.map(({ payout }) => payout.payoutId)
  }
  await take(...['a1', 'a2', 'a3'].map((payoutId) => pay('acme', payoutId)))
  const letGo = await holding((tx) => tx.run(lockPayoutA1, {}))
  await take(cancel('acme', 'a1'))
  const letGoOfBoth = await holding((tx) => tx.run(lockPayoutA2, {}))
  await take(cancel('acme', 'a2'))
  await letGoOfBoth()
  await processWaiting(deps)
  await letGo()
  assert.deepEqual(await claimed(), ['a3'])
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 cancelled cancelled', 'a2 cancelled cancelled', 'a3 submitting'])
})

test('while a merchant stays locked, whoever tries its waiting commands keeps no partition from others', async (t) => {
  const { deps, ledger, holding, take, pay, states } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1'))
  const trying = processWaiting(deps)
  await eventually(
    'it waits for the merchant',
    async () => ((await ledger.db.run(waitForLocks, {}))[0]?.count ?? 0) > 0,
  )
  await ledger.db.transaction('test', async (tx) => {
    await tx.run(boundLockWaits, { ms: '1' })
    await tx.run(lockStanding, { partitions: [{ topic: ledger.topics.commands, partition: 0 }] })
  })
  assert.equal(await trying, 1_000)
  await letGo()
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 queued'])
})

test('a merchant whose locks stay held is told once, and anew when that ends and happens again', async (t) => {
  const { deps, holding, take, pay } = await intake(t)
  const told: unknown[] = []
  const log = { ...silentLogger, warn: (line: unknown) => void told.push(line) } as typeof silentLogger
  const telling = { ...deps, log }
  for (const id of ['a1', 'a2']) {
    const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
    await take(pay('acme', id))
    await processWaiting(telling)
    assert.deepEqual(told, [])
    telling.stuckSince.set('acme', performance.now() - 60_000)
    await processWaiting(telling)
    await processWaiting(telling)
    assert.deepEqual(told.splice(0), [{ merchantId: 'acme' }])
    await letGo()
    // Another process stores them.
    await processWaiting({ ...deps, stuckSince: new Map() })
    await processWaiting(telling)
    assert.equal(telling.stuckSince.size, 0)
  }
})

const waitForLocks = sql<object, { count: number }>`
  select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

const changePayout = sql<object>`update payouts set updated_at = now() where payout_id = 'a1'`
const lockEarlyCancel = sql<object>`select from early_cancels for update`

test('while somebody changes a payout, a repeat of its command waits, and all others go on', async (t) => {
  const { deps, holding, take, pay, states, behind } = await intake(t)
  await take(pay('acme', 'a1'))
  const letGo = await holding((tx) => tx.run(changePayout, {}))
  await take(pay('acme', 'a1'), pay('bolt', 'b1'), pay('acme', 'a2'))
  assert.deepEqual([await states(), await behind()], [['a1 queued', 'b1 queued'], 2n])
  await letGo()
  await processWaiting(deps)
  assert.deepEqual([await states(), await behind()], [['a1 queued', 'a2 queued', 'b1 queued'], 0n])
})

test('while an early cancellation is locked, its command waits, and all others go on', async (t) => {
  const { deps, holding, take, pay, cancel, states } = await intake(t)
  await take(cancel('acme', 'a1'))
  const letGo = await holding((tx) => tx.run(lockEarlyCancel, {}))
  await take(...Array.from({ length: 5 }, (_, i) => pay('bolt', `b${i}`)), pay('acme', 'a1'))
  assert.deepEqual(await states(), ['b0 queued', 'b1 queued', 'b2 queued', 'b3 queued', 'b4 queued'])
  await letGo()
  await processWaiting(deps)
  assert.equal((await states())[0], 'a1 cancelled cancelled')
})

const refuses = sql<object>`alter table payouts add constraint odd check (payout_id <> 'odd')`
const letters = sql<object, { headers: { reason: string; origin: string } }>`
  select headers from ${outboxMessages} where type = 'in.payoutd.DeadLetter'`

test('a waiting command that the database refuses is dead-lettered alone, with its position in Kafka', async (t) => {
  const { deps, ledger, holding, take, pay, states } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1'), pay('acme', 'odd'), pay('acme', 'a2'))
  await letGo()
  await ledger.db.run(refuses, {})
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a1 queued', 'a2 queued'])
  const origin = `${ledger.topics.commands}#L1:0:1`
  assert.deepEqual(await ledger.db.run(letters, {}), [{ headers: { reason: 'refused-by-database', origin } }])
})

const loseAll = sql<object, { position: bigint }>`delete from waiting_commands returning position`
const goOnFrom = sql<{ position: bigint }>`
  select setval(pg_get_serial_sequence('waiting_commands', 'position'), ${'position'}, false)`

test('if another server took over meanwhile and gave out the same positions, no command that waits there is lost', async (t) => {
  const { deps, ledger, holding, take, pay, states } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1'))
  let isSetBack = false
  const setBack = async () => {
    const [lost] = await ledger.db.run(loseAll, {})
    await ledger.db.run(goOnFrom, { position: lost?.position ?? 0n })
    await take(pay('acme', 'a2'))
    await letGo()
  }
  const decode: WaitingDeps['decode'] = async (value) => {
    if (!isSetBack) {
      isSetBack = true
      await setBack()
    }
    return deps.decode(value)
  }
  await processWaiting({ ...deps, decode })
  await processWaiting(deps)
  assert.deepEqual(await states(), ['a2 queued'])
})

test('while a rotation of keys reseals a command that waits, those after it wait for it', async (t) => {
  const { deps, ledger, holding, take, pay } = await intake(t)
  const letGo = await holding((tx) => tx.run(lockForCancels, { merchantIds: ['acme'] }))
  await take(pay('acme', 'a1', { amount: 20_000n }), pay('acme', 'a1', { amount: 30_000n }))
  await letGo()
  const rotated = await holding((tx) => tx.run(resealFirst, {}))
  const processing = processWaiting(deps)
  await eventually('it waits', async () => (await ledger.db.run(waiters, {})).length > 0)
  await rotated()
  await processing
  assert.deepEqual(await ledger.db.run(amounts, {}), [{ amount: 20_000n }])
})

test('a turn reads large commands that wait by their size, and one at least', async (t) => {
  const { ledger } = await testLedger(t)
  const key = { merchantId: 'acme', topic: 'payout.commands', partition: 0 }
  const commands = [300, 300, 700, 1].map((bytes, i) => ({
    ...{ merchantId: 'acme', recordOffset: BigInt(i), origin: `0:${i}`, sealed: Buffer.alloc(bytes) },
    cancels: null,
  }))
  await ledger.db.run(keepWaiting, { ...key, logId: null, commands })
  const sizes = async (bytes: number) =>
    (await ledger.db.run(firstWaiting, { ...key, limit: 3, bytes })).map(({ sealed }) => sealed.length)
  assert.deepEqual(await sizes(100), [300])
  assert.deepEqual(await sizes(600), [300, 300])
  assert.deepEqual(await sizes(10_000), [300, 300, 700])
})
