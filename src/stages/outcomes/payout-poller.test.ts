import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { PresenceCheck } from '../../gateway/presence-check.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import { type PayoutPollerDeps, payoutPoller } from './payout-poller.ts'
import type { Querier } from './poller.ts'

const longDue = sql<object>`update payouts set due_at = now() - interval '2 hours' where payout_id like 'locked-%'`
const lockLongDue = sql<object>`select from payouts where payout_id like 'locked-%' for update`
const POLICY = { ...QUERY_POLICY, graceMs: 5_000, confirmations: 2, duplicatesRefused: true }
const HANGING = 200

/** Makes every payout unknown and due for a query; those of acme have waited longest. */
const allUnknown = sql<object>`
  update payouts
  set state = 'unknown', attempt = 1, ready = false, unknown_since = now(),
      due_at = now() - case merchant_id when 'acme' then interval '1 hour' else interval '1 second' end`

/** What time alone changes: a schedule, an ended lease, and the deadline of a payout that payoutd asks about. */
const timersOfAcme = sql<object>`
  update payouts
  set state = case payout_id when 'scheduled' then 'held' when 'leased' then 'submitting' else state end,
      reason = case payout_id when 'scheduled' then 'schedule' end,
      attempt = case payout_id when 'scheduled' then 0 else 1 end,
      deadline = case payout_id when 'expired' then now() else deadline end,
      due_at = now()
  where payout_id in ('scheduled', 'leased', 'expired')`

const sentTo = sql<{ accountId: string }>`update payouts set account_id = ${'accountId'}`
const scheduled = sql<object>`
  update payouts set state = 'held', reason = 'schedule', ready = false, due_at = now()`
const refusesToQueue = sql<object>`
  alter table payouts add constraint odd check (payout_id not like 'refused%' or state <> 'queued')`
const anomalies = sql<object, { kind: string; source: string; times: number; payoutId: string }>`
  select kind, source, times, payout_id from anomalies order by payout_id`
const refusesToBeAsked = sql<object>`
  alter table payouts add constraint odd check (payout_id <> 'refused' or asked_at is null)`
const takesLongOfAcme = sql<object>`
  alter table payouts add constraint odd check (merchant_id <> 'acme' or pg_sleep(3) is not null) not valid`

const pollerOf = (t: TestContext, ledger: Ledger, queriers: PayoutPollerDeps['queriers'] = new Map()) => {
  const poller = payoutPoller({
    ledger,
    decisions: DECISIONS,
    queryPolicies: new Map([...queriers.keys()].map((merchantId) => [merchantId, POLICY])),
    queriers,
    presenceCheck: new PresenceCheck(systemClock),
    counted: new Metrics().counter('evidence', 'evidence', ['source', 'outcome']),
    log: silentLogger,
  })
  t.after(() => poller.drain())
  return poller
}

const statesOf = async (ledger: Ledger) =>
  Object.fromEntries((await payoutsOf(ledger)).map(({ payoutId, state }) => [payoutId, state]))

test('timers of payouts that the database refuses hold up no other payout, however many one merchant has', async (t) => {
  const { ledger, config } = await testLedger(t)
  const refused = Array.from({ length: 60 }, (_, i) => `refused${i}`)
  const ofAcme = [...refused, 'a'].map((id) => command(id))
  await accepted(ledger, config, [...ofAcme, command('b', { merchantId: 'bolt' })])
  await ledger.db.run(scheduled, {})
  await ledger.db.run(refusesToQueue, {})
  const poller = pollerOf(t, ledger)
  await eventually('both others are queued', async () => {
    await poller.turn()
    const { a, b } = await statesOf(ledger)
    return a === 'queued' && b === 'queued'
  })
  const states = await statesOf(ledger)
  assert.deepEqual(new Set(refused.map((id) => states[id])), new Set(['held']))
})

test('a due payout that the database refuses is one anomaly, however often payoutd tries', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(
    ledger,
    config,
    ['refused1', 'refused2', 'a'].map((id) => command(id)),
  )
  await ledger.db.run(scheduled, {})
  await ledger.db.run(refusesToQueue, {})
  for (let tries = 0; tries < 2; tries++) {
    const poller = pollerOf(t, ledger)
    await poller.turn()
    await poller.drain()
  }
  const anomaly = { kind: 'not-stored', source: 'CLOCK', times: 2 }
  assert.deepEqual(await ledger.db.run(anomalies, {}), [
    { ...anomaly, payoutId: 'refused1' },
    { ...anomaly, payoutId: 'refused2' },
  ])
})

test('payoutd asks about all other payouts if one cannot be marked as asked about', async (t) => {
  const { ledger, config } = await testLedger(t)
  const ofAcme = ['refused', 'a'].map((id) => command(id))
  await accepted(ledger, config, [...ofAcme, command('b', { merchantId: 'bolt' })])
  await ledger.db.run(allUnknown, {})
  await ledger.db.run(refusesToBeAsked, {})
  const asked = new Set<string>()
  const query: Querier<QueryAnswer>['query'] = async (orderNo) => {
    asked.add(orderNo)
    return { kind: 'unknown', reason: 'timeout', exchange: {} }
  }
  const querier = [{ ...ACCOUNT, queryPolicy: POLICY, query, timeoutMs: 60_000 }] as const
  const poller = pollerOf(
    t,
    ledger,
    new Map([
      ['acme', querier],
      ['bolt', querier],
    ]),
  )
  const payouts = await payoutsOf(ledger)
  const others = payouts.filter(({ payoutId }) => payoutId !== 'refused').map(({ orderNo }) => orderNo)
  await eventually('both others are asked about', async () => {
    await poller.turn()
    return asked.size === others.length
  })
  assert.deepEqual(asked, new Set(others))
})

test('slow timers of one merchant hold up no other merchant', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('a'), command('b', { merchantId: 'bolt' })])
  await ledger.db.run(scheduled, {})
  await ledger.db.run(takesLongOfAcme, {})
  const poller = pollerOf(t, ledger)
  await eventually('that of the other is queued', async () => {
    await poller.turn()
    return (await statesOf(ledger)).b === 'queued'
  })
  assert.equal((await statesOf(ledger)).a, 'held')
})

test('while all queries of one merchant hang, timers run and payoutd queries for another merchant', async (t) => {
  const { ledger, config } = await testLedger(t)
  const ids = ['scheduled', 'leased', 'expired', ...Array.from({ length: HANGING }, (_, i) => `a${i}`)]
  await accepted(ledger, config, [...ids.map((id) => command(id)), command('b', { merchantId: 'bolt' })])
  await ledger.db.run(allUnknown, {})
  await ledger.db.run(timersOfAcme, {})

  const never = Promise.withResolvers<QueryAnswer>()
  t.after(() => never.resolve({ kind: 'unknown', reason: 'timeout', exchange: {} }))
  let hanging = 0
  const asked: string[] = []
  const querier = (query: Querier<QueryAnswer>['query']): readonly [Querier<QueryAnswer>] => [
    { ...ACCOUNT, queryPolicy: POLICY, query, timeoutMs: 60_000 },
  ]
  const poller = pollerOf(
    t,
    ledger,
    new Map([
      [
        'acme',
        querier(async () => {
          hanging++
          return never.promise
        }),
      ],
      [
        'bolt',
        querier(async (orderNo) => {
          asked.push(orderNo)
          return { kind: 'unknown', reason: 'timeout', exchange: {} }
        }),
      ],
    ]),
  )
  // A turn waits only so long for what it began.
  await eventually('the timers have run, and the other merchant is asked', async () => {
    await poller.turn()
    const { scheduled, leased, expired } = await statesOf(ledger)
    return asked.length > 0 && scheduled === 'queued' && leased === 'unknown' && expired === 'review'
  })
  const [b] = (await payoutsOf(ledger)).filter(({ payoutId }) => payoutId === 'b')
  assert.deepEqual(new Set(asked), new Set([b?.orderNo]))
  assert.ok(hanging < HANGING, `${hanging} queries of one merchant are under way`)
})

test('payouts that somebody keeps locked hold up no query about others of their merchant', async (t) => {
  const { ledger, config } = await testLedger(t)
  const ids = Array.from({ length: 70 }, (_, i) => `locked-${i}`)
  await accepted(
    ledger,
    config,
    [...ids, 'free'].map((id) => command(id)),
  )
  await ledger.db.run(allUnknown, {})
  await ledger.db.run(longDue, {})
  const asked: string[] = []
  const query = async (orderNo: string): Promise<QueryAnswer> => {
    asked.push(orderNo)
    return { kind: 'unknown', reason: 'timeout', exchange: {} }
  }
  const querier = { ...ACCOUNT, queryPolicy: POLICY, query, timeoutMs: 60_000 }
  const poller = pollerOf(t, ledger, new Map([['acme', [querier]]]))
  await ledger.db.transaction('test', async (tx) => {
    await tx.run(lockLongDue, {})
    await eventually('the free one is asked about', async () => {
      await poller.turn()
      return asked.length > 0
    })
  })
  const [free] = (await payoutsOf(ledger)).filter(({ payoutId }) => payoutId === 'free')
  assert.deepEqual(asked, [free?.orderNo])
})

for (const [others, busy] of [
  [39, 1],
  [39, 2],
  [0, 2],
] as const) {
  test(`beside ${others} merchants that have nothing due, ${busy} that have much due share the queries`, async (t) => {
    const { ledger, config } = await testLedger(t)
    const merchants = Array.from({ length: others + busy }, (_, i) => `m${i}`)
    const asking = merchants.slice(others)
    const ids = Array.from({ length: 100 }, (_, i) => `${i}`)
    await accepted(
      ledger,
      config,
      asking.flatMap((merchantId) => ids.map((id) => command(`${merchantId}-${id}`, { merchantId }))),
    )
    await ledger.db.run(allUnknown, {})
    const never = Promise.withResolvers<QueryAnswer>()
    t.after(() => never.resolve({ kind: 'unknown', reason: 'timeout', exchange: {} }))
    const underWay = new Map<string, number>()
    const querierOf = (merchantId: string): Querier<QueryAnswer> => ({
      ...{ ...ACCOUNT, queryPolicy: POLICY, timeoutMs: 60_000 },
      query() {
        underWay.set(merchantId, (underWay.get(merchantId) ?? 0) + 1)
        return never.promise
      },
    })
    const poller = pollerOf(
      t,
      ledger,
      new Map(merchants.map((merchantId) => [merchantId, [querierOf(merchantId)] as const])),
    )
    await eventually('as many queries as there are slots', async () => {
      await poller.turn()
      return [...underWay.values()].reduce((sum, count) => sum + count, 0) >= 64
    })
    for (const merchantId of asking)
      assert.ok((underWay.get(merchantId) ?? 0) >= 48 / busy, JSON.stringify([...underWay]))
  })
}

test('what one process puts in review because it lacks the account, another that has it asks about', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('a')])
  await ledger.db.run(allUnknown, {})
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', ...ACCOUNT, feeEstimate: 0n })
  await ledger.db.run(sentTo, { accountId: 'former' })
  const asked: string[] = []
  const query: Querier<QueryAnswer>['query'] = async (orderNo) => {
    asked.push(orderNo)
    return { kind: 'unknown', reason: 'timeout', exchange: {} }
  }
  const ours = { ...ACCOUNT, queryPolicy: POLICY, query, timeoutMs: 60_000 }
  const has = pollerOf(t, ledger, new Map([['acme', [ours, { ...ours, accountId: 'former' }] as const]]))
  const lacks = pollerOf(t, ledger, new Map([['acme', [ours] as const]]))
  await eventually('the payout is in review', async () => {
    await lacks.turn()
    return (await statesOf(ledger)).a === 'review'
  })
  await has.queryLost(() => undefined)
  const [payout] = await payoutsOf(ledger)
  await eventually('the other asks about it', async () => asked.length > 0)
  assert.deepEqual(asked, [payout?.orderNo])
})
