import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { outboxMessages } from '../sql/outbox-messages.ts'
import { migrate } from './migrate.ts'

test('eight processes that migrate at once take turns, and only one migrates', async (t) => {
  const { url } = await freshDatabase(t, { migrated: false })
  const done = await Promise.all(Array.from({ length: 8 }, () => migrate(url, silentLogger)))
  assert.equal(done.filter((names) => names.length > 0).length, 1)
  assert.deepEqual(await migrate(url, silentLogger), [])
})

test('a refusal in the reason moves to a field of its own', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger, '0019_asked_at')
  for (const [payoutId, state, reason] of [
    ['refused', 'unknown', 'refused: closed'],
    ['asked', 'unknown', 'timeout'],
    ['ended', 'failed', 'refused: closed'],
  ] as const)
    await db.run(insertPayout, { payoutId, state, reason })
  await migrate(url, silentLogger)
  assert.deepEqual(await db.run(refusals, {}), [
    { payoutId: 'asked', reason: 'timeout', refusal: null },
    { payoutId: 'ended', reason: 'refused: closed', refusal: null },
    { payoutId: 'refused', reason: 'refused', refusal: 'closed' },
  ])
})

const insertPayout = sql<{ payoutId: string; state: string; reason: string }>`
  insert into payouts (merchant_id, payout_id, amount, currency, priority, state, reason, version, deadline, ready, due_at)
  values ('acme', ${'payoutId'}, 100, 'INR', 0, ${'state'}, ${'reason'}, 1, now(), false,
          case when ${'state'} = 'unknown' then now() end)`
const refusals = sql<object, { payoutId: string; reason: string; refusal: string | null }>`
  select payout_id, reason, refusal from payouts order by payout_id`

test('payouts get a mark for earlier reports of the gateway that contradict their end', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger, '0061_payins_asked_anew')
  const said = [
    ['open', 'failed', 'contradiction', '(success, ₹1.00)', false],
    ['seen', 'cancelled', 'contradiction', '(success, ₹1.00)', true],
    ['paid', 'paid', 'contradiction', '(failed, ₹1.00)', false],
    ['failed-again', 'failed', 'amount-mismatch', '(failed, ₹1.00)', false],
    ['ambiguous', 'failed', 'ambiguous-callback', '(success, ₹1.00)', false],
  ] as const
  for (const [payoutId, state, kind, detail, isSeen] of said) {
    await db.run(insertPayout, { payoutId, state, reason: '' })
    await db.run(insertAnomaly, { payoutId, kind, detail, isSeen })
  }
  await migrate(url, silentLogger)
  assert.deepEqual(await db.run(saidOtherwise, {}), [
    { payoutId: 'ambiguous', saidOtherwise: null },
    { payoutId: 'failed-again', saidOtherwise: null },
    { payoutId: 'open', saidOtherwise: 'open' },
    { payoutId: 'paid', saidOtherwise: null },
    { payoutId: 'seen', saidOtherwise: 'acknowledged' },
  ])
})

const insertAnomaly = sql<{ payoutId: string; kind: string; detail: string; isSeen: boolean }>`
  insert into anomalies (merchant_id, anomaly_id, payout_id, kind, detail, source, acknowledged_by, acknowledged_reason,
                         acknowledged_at)
  select 'acme', gen_random_uuid(), ${'payoutId'}, ${'kind'}, ${'detail'}, 'CALLBACK', seen.by, seen.reason, seen.at
  from (select 1) one left join (select 'asha' as by, '' as reason, now() as at) seen on ${'isSeen'}::bool`
const saidOtherwise = sql<object, { payoutId: string; saidOtherwise: string | null }>`
  select payout_id, said_otherwise from payouts order by payout_id`

test('open payouts get a mark for orders besides that an anomaly tells of and nobody ruled out, and that mark is always a sign of life', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger, '0067_order_besides')
  for (const [payoutId, state, kind, { reason = '', isSeen = false } = {}] of [
    ['another-account', 'review', 'other-account'],
    ['another-amount', 'processing', 'amount-mismatch'],
    ['another-order', 'processing', 'order-id-mismatch'],
    ['ended', 'paid', 'order-id-mismatch'],
    ['seen', 'processing', 'order-id-mismatch', { isSeen: true }],
    ['sent-again-by-name', 'queued', 'order-id-mismatch', { reason: 'resent' }],
  ] as [string, string, string, { reason?: string; isSeen?: boolean }?][]) {
    await db.run(insertPayout, { payoutId, state, reason })
    await db.run(insertAnomaly, { payoutId, kind, detail: '', isSeen })
  }
  await db.run(insertPayout, { payoutId: 'marked', state: 'processing', reason: '' })
  await db.run(markBesides, { payoutId: 'marked' })
  await migrate(url, silentLogger)
  assert.deepEqual(await db.run(ordersBesides, {}), [
    { payoutId: 'another-account', orderBesides: true, orderShown: true },
    { payoutId: 'another-amount', orderBesides: false, orderShown: false },
    { payoutId: 'another-order', orderBesides: true, orderShown: true },
    { payoutId: 'ended', orderBesides: false, orderShown: false },
    { payoutId: 'marked', orderBesides: true, orderShown: true },
    { payoutId: 'seen', orderBesides: false, orderShown: false },
    { payoutId: 'sent-again-by-name', orderBesides: false, orderShown: false },
  ])
  await assert.rejects(db.run(markBesides, { payoutId: 'another-amount' }), /order_besides_is_shown/)
})

const markBesides = sql<{ payoutId: string }>`
  update payouts set order_besides = true where payout_id = ${'payoutId'}`
const ordersBesides = sql<object, { payoutId: string; orderBesides: boolean; orderShown: boolean }>`
  select payout_id, order_besides, order_shown from payouts order by payout_id`

test('an open payout whose order the gateway showed, at no known account, was sent to any', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger, '0070_traced_commands')
  for (const state of ['queued', 'review', 'failed'])
    await db.run(insertPayout, { payoutId: state, state, reason: '' })
  await db.run(showOrders, {})
  await migrate(url, silentLogger)
  assert.deepEqual(await db.run(doubts, {}), [
    { payoutId: 'failed', doubted: false },
    { payoutId: 'queued', doubted: true },
    { payoutId: 'review', doubted: true },
  ])
  await assert.rejects(db.run(removeDoubts, {}), /shown_was_sent/)
})

const showOrders = sql<object>`update payouts set order_shown = true`
const removeDoubts = sql<object>`update payouts set doubted = false`
const doubts = sql<object, { payoutId: string; doubted: boolean }>`
  select payout_id, doubted from payouts order by payout_id`

test('messages that wait, or that Kafka refused, stay in their order when rows of the outbox come to hold many', async (t) => {
  const { url, db } = await freshDatabase(t, { migrated: false })
  await migrate(url, silentLogger, '0068_orders_besides_before')
  for (const key of ['a', 'b', 'c']) await db.run(insertMessage, { key })
  await db.run(refuseFirst, {})
  await migrate(url, silentLogger)
  assert.deepEqual(await db.run(waitingMessages, {}), [
    { shard: 3, key: 'b', value: Buffer.from('b'), headers: { n: 'b' } },
    { shard: 3, key: 'c', value: Buffer.from('c'), headers: { n: 'c' } },
  ])
  const [refused] = await db.run(refuseNext, {})
  assert.ok((refused?.position ?? 0n) > 3n)
})

const insertMessage = sql<{ key: string }>`
  insert into outbox (shard, topic, key, event_id, type, value, headers)
  values (7, 'events', ${'key'}, gen_random_uuid(), 'event', ${'key'}::text::bytea, jsonb_build_object('n', ${'key'}::text))`
const refuseFirst = sql<object>`
  with first as (delete from outbox where key = 'a' returning *)
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, headers, at, reason)
  select position, shard, topic, key, event_id, type, value, headers, at, 'MESSAGE_TOO_LARGE' from first`
const refuseNext = sql<object, { position: bigint }>`
  insert into outbox_refused (shard, topic, key, event_id, type, value, at, reason)
  values (0, 'events', 'd', gen_random_uuid(), 'event', '', now(), 'MESSAGE_TOO_LARGE')
  returning position`
const waitingMessages = sql<object, { shard: number; key: string; value: Buffer; headers: unknown }>`
  select shard, key, value, headers from ${outboxMessages} order by position, n`

test('history is partitioned by month, and months past retention are dropped', async (t) => {
  const { db } = await freshDatabase(t)
  const partitions = async () => {
    const rows = await db.run(
      sql<object, { name: string }>`
        select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
        where inhparent = 'history'::regclass order by 1`,
      {},
    )
    return rows.map(({ name }) => name)
  }
  const before = await partitions()
  assert.equal(before.length, 4)
  await db.run(
    sql<object>`create table history_2020_01 partition of history for values from ('2020-01-01') to ('2020-02-01')`,
    {},
  )
  await Promise.all([1, 2, 3].map(() => db.run(keep, { months: null })))
  assert.deepEqual(await partitions(), ['history_2020_01', ...before])
  assert.deepEqual(await db.run(keep, { months: 12 }), [{ left: true }])
  assert.deepEqual(await partitions(), before)
  assert.deepEqual(await db.run(keep, { months: 12 }), [{ left: false }])
})

const keep = sql<{ months: number | null }, { left: boolean }>`
  select keep_history(${'months'}::int) as left`
const forgetLatest = sql<object>`drop table history_${{ fragment: nextMonth() }}`
const insertEntry = sql<object>`
  insert into history (merchant_id, payout_id, to_state, source) values ('acme', 'p', 'queued', 'COMMAND')`
const strayEntry = sql<object>`
  insert into history (merchant_id, payout_id, to_state, source, at)
  values ('acme', 'p', 'queued', 'COMMAND', date_trunc('month', now()) + interval '1 month')`
const readAll = sql<object, { count: number }>`select count(*)::int as count from history`
const strays = sql<object, { count: number }>`select count(*)::int as count from history_default`

/** `2026_12`, in UTC. */
function nextMonth(): string {
  const now = new Date()
  const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1))
  return first.toISOString().slice(0, 7).replace('-', '_')
}

test('during a long read of the history, a due partition makes nobody wait, and is created later', async (t) => {
  const { db } = await freshDatabase(t)
  await db.run(forgetLatest, {})
  await db.run(strayEntry, {})
  await db.transaction('test', async (reader) => {
    await reader.run(readAll, {})
    const kept = db.run(keep, { months: null })
    for (let i = 0; i < 20; i++) {
      const began = performance.now()
      await db.run(insertEntry, {})
      assert.ok(performance.now() - began < 1_000, 'an insert waited')
    }
    assert.deepEqual(await kept, [{ left: true }])
  })
  assert.deepEqual(await db.run(strays, {}), [{ count: 1 }])
  assert.deepEqual(await db.run(keep, { months: null }), [{ left: false }])
  assert.deepEqual(await db.run(strays, {}), [{ count: 0 }])
  assert.deepEqual(await db.run(readAll, {}), [{ count: 21 }])
})
