import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { ROLES, startPayoutd } from '../../src/app/start.ts'
import type { Merchant } from '../../src/config/merchants.ts'
import { command } from '../../src/domain/commands/command.fixture.ts'
import { payoutKey } from '../../src/domain/identifiers.ts'
import { loadDialect } from '../../src/gateway/dialect/dialect-file.ts'
import { migrateAll } from '../../src/ledger/tables/migrate-all.ts'
import { createPublisher } from '../../src/platform/kafka/producer.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql, withSession } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { payoutsOf, testLedger } from '../../test/ledger.ts'

/** A wait for a lock fails after 1 s. Without that limit, each lasts 10 s and starts again at once. */
const SOON_MS = 8_000

const lockedNow = `begin;
  select from merchants where merchant_id = 'acme' for update;
  select from payouts where merchant_id = 'acme' for update`
const waitForLocks = sql<object, { count: number }>`
  select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

test('while every row of one merchant is locked, payouts of another take no longer than usual', async (t) => {
  const ends = new AsyncDisposableStack()
  t.after(() => ends.disposeAsync())
  const folder = mkdtempSync(path.join(tmpdir(), 'locked-'))
  ends.defer(() => rmSync(folder, { recursive: true }))
  const { ledger, config: read, codec } = await testLedger({ after: (drop) => ends.defer(drop) })
  const given = read.merchants.get('acme') as Merchant
  const merchants = ['acme', 'bolt'].map(
    (merchantId, i): Merchant => ({
      ...given,
      merchantId,
      mchId: `${1000100 + i}`,
      key: randomBytes(12).toString('hex'),
      dialect: loadDialect('sandbox', { queryAfterMs: [300] }),
    }),
  )
  const sandbox = await startSandbox({
    state: path.join(folder, 'sandbox.sqlite'),
    merchants: merchants.map(({ mchId, key }) => ({ mchId, key })),
    callbackRetries: [1, 1, 1],
  })
  ends.defer(() => sandbox.stop())
  const config = {
    ...read,
    // Half of the default: waits for locks would use them up.
    databaseConnections: 4,
    merchants: new Map(merchants.map((each) => [each.merchantId, { ...each, baseUrl: sandbox.url }])),
  }
  await migrateAll(config, silentLogger)
  const payoutd = await startPayoutd(config, new Set(ROLES), silentLogger)
  ends.defer(() => payoutd.stop())
  const publisher = createPublisher('test', config.kafka, silentLogger)
  ends.defer(() => publisher.close())
  const topic = ledger.topics.commands
  const requested = codec.encoder<object>(topic, 'in.payoutd.PayoutRequested')
  const cancelled = codec.encoder<object>(topic, 'in.payoutd.PayoutCancelRequested')
  const publish = (merchantId: string, payoutIds: string[]) =>
    publisher.publish(
      payoutIds.map((payoutId) => ({
        ...{ topic, key: payoutKey({ merchantId, payoutId }) },
        value: requested({
          ...command(payoutId, { merchantId }),
          accountNo: `5010${payoutId.length}${Date.now()}`,
        }),
      })),
    )
  const ids = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`)
  const paid = async (payoutId: string) =>
    (await payoutsOf(ledger)).some((each) => each.payoutId === payoutId && each.state === 'paid')
  const takes = async (payoutId: string) => {
    const began = performance.now()
    await publish('bolt', [payoutId])
    await eventually(`${payoutId} to be paid`, () => paid(payoutId), 30_000)
    return performance.now() - began
  }
  await takes('bolt-first')
  const usual = await takes('bolt-usual')

  await withSession(config.databaseUrl, async (session) => {
    await publish('acme', ids('acme', 200))
    await eventually(
      'most of acme to be sent',
      async () =>
        (await payoutsOf(ledger)).filter(
          ({ payoutId, attempt }) => payoutId.startsWith('acme') && attempt > 0,
        ).length > 100,
    )
    await session.query(lockedNow)
    await publisher.publish(
      ids('acme', 20).map((payoutId) => ({
        ...{ topic, key: `acme:${payoutId}` },
        value: cancelled({ merchantId: 'acme', payoutId, reason: 'a mistake', requestedBy: 'asha' }),
      })),
    )
    await eventually(
      'something to wait',
      async () => ((await ledger.db.run(waitForLocks, {}))[0]?.count ?? 0) > 0,
    )
    for (const payoutId of ids('bolt', 5)) {
      const took = await takes(payoutId)
      assert.ok(took < usual + SOON_MS, `${took} ms, and usually ${usual} ms`)
    }
    await session.query('rollback')
  })
  await eventually(
    'everything of acme to end',
    async () => (await payoutsOf(ledger)).every(({ state }) => state === 'paid' || state === 'cancelled'),
    30_000,
  )
})
