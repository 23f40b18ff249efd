import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accepted, setBalance, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import type { State } from '../domain/payout/states.ts'
import { become, change } from '../domain/payout/transition.ts'
import { accept, decided, submit } from '../operators/operations.fixture.ts'
import { pauseMerchant } from '../operators/pause.ts'
import { fence } from '../operators/recovery/recovery.ts'
import { keepSettings } from '../operators/sql/gateway-settings.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { leftOf } from '../stages/dispatch/covered-by-balance.ts'
import { WARM } from '../stages/dispatch/merchant-gate.ts'
import { saveCircuit } from '../stages/dispatch/sql/funds.ts'
import { circuitText, merchantsText } from '../views/merchant-text.ts'
import { merchantOverviews, merchantTraffic } from './merchant-overview.ts'

const RULES = { leftOf, warm: WARM }

/** Three queued payouts of ₹100 (one of them waits for a back-off), and one in each state of interest. */
async function busy(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 500n })
  await ledger.db.run(upsertMerchant, { merchantId: 'bolt', settingsHash: 'h', feeEstimate: 500n })
  const ids = ['q-1', 'q-2', 'back-off', 'sending', 'unknown', 'processing', 'review', 'cancelled']
  const amount = paise(10_000n)
  await accepted(ledger, config, [
    ...ids.map((id) => command(id, { amount })),
    command('later', { amount, notBefore: Date.UTC(2099, 0) }),
  ])
  const move = (id: string, ...to: State[]) =>
    decided(ledger, id, (payout) => ({
      change: {
        before: payout,
        after: to.reduce((each, state) => become(each, state, { attempt: 1 }), payout),
        source: 'CLOCK',
        exchange: null,
      },
    }))
  for (const id of ['back-off', 'sending', 'unknown', 'processing']) await decided(ledger, id, submit)
  await move('back-off', 'queued')
  await move('unknown', 'unknown')
  await decided(ledger, 'processing', accept)
  await move('review', 'review')
  await decided(ledger, 'cancelled', (payout) => ({
    change: { before: payout, after: become(payout, 'cancelled', {}), source: 'CLOCK', exchange: null },
  }))
  return ledger
}

async function withBalance(ledger: Awaited<ReturnType<typeof busy>>, available: bigint) {
  await setBalance(ledger.db, 'acme', available)
}

async function overviewOf(ledger: Awaited<ReturnType<typeof busy>>) {
  const [acme, bolt] = await merchantOverviews(ledger.db, RULES)
  assert.ok(acme && bolt)
  return { acme, bolt }
}

test('every payout under way is counted in its state, and none that has ended', async (t) => {
  const { acme, bolt } = await overviewOf(await busy(t))
  const counts = Object.entries(acme.traffic).map(([state, { count, amount }]) => [state, count, amount])
  assert.deepEqual(counts, [
    ['held', 1, 10_000n],
    ['queued', 3, 30_000n],
    ['submitting', 1, 10_000n],
    ['unknown', 1, 10_000n],
    ['processing', 1, 10_000n],
  ])
  assert.equal(acme.inReview, 1)
  assert.deepEqual([bolt.traffic.queued.count, bolt.inReview], [0, 0])
})

test("the overview shows where a merchant's payouts are sent, and what is open at another account", async (t) => {
  const ledger = await busy(t)
  const { acme: unknown } = await overviewOf(ledger)
  assert.deepEqual([unknown.account, unknown.openElsewhere], [null, []])
  const account = (accountId: string, mchId: string) => ({
    ...{ accountId, mchId, baseUrl: `https://${accountId}.example/v1`, dialectName: 'default' },
  })
  const now = account('now', '2')
  const before = account('before', '1')
  for (const [each, settingsHash] of [
    [before, 'g'],
    [now, 'h'],
  ] as const)
    await ledger.db.run(keepSettings, { ...each, merchantId: 'acme', settingsHash, keyFingerprint: 'k' })
  for (const [id, accountId] of [
    ['sending', 'now'],
    ['unknown', 'before'],
    ['review', 'gone'],
  ] as const)
    await decided(ledger, id, (payout) =>
      change(payout, { ...payout, accountId }, 'OPERATOR', { note: 'test' }),
    )
  const { acme } = await overviewOf(ledger)
  assert.deepEqual(acme.account, now)
  assert.deepEqual(acme.openElsewhere, [
    { accountId: 'before', account: before, count: 1 },
    { accountId: 'gone', account: null, count: 1 },
  ])
  assert.match(
    merchantsText([acme]),
    /mchId 2 at now\.example\n\nacme has 1 open at mchId 1 at before\.example \(dialect default, account before\)\nacme has 1 open at gateway account gone/,
  )
})

test('one merchant can be counted alone', async (t) => {
  const ledger = await busy(t)
  assert.equal((await merchantTraffic(ledger.db, 'acme')).queued.count, 3)
  assert.equal((await merchantTraffic(ledger.db, 'bolt')).queued.count, 0)
})

test('the shortfall is what is queued, with fees, minus what the balance still covers', async (t) => {
  const ledger = await busy(t)
  // 30,000 queued and 1,500 of fees; payouts that are sending or unknown may have used 21,000 of the balance.
  await withBalance(ledger, 40_000n)
  assert.equal((await overviewOf(ledger)).acme.shortfall, 31_500n - 19_000n)
  await withBalance(ledger, 10n ** 9n)
  assert.equal((await overviewOf(ledger)).acme.shortfall, 0n)
})

test('without a balance there is no shortfall to show', async (t) => {
  const { acme } = await overviewOf(await busy(t))
  assert.equal(acme.balance, null)
  assert.equal(acme.shortfall, null)
  assert.match(merchantsText([acme]), /not known/)
})

test('the overview shows everything that keeps a merchant from sending, and until when', async (t) => {
  const ledger = await busy(t)
  await ledger.db.run(saveCircuit, {
    merchantId: 'acme',
    available: null,
    claimedTotal: paise(0n),
    feeEstimate: paise(500n),
    feeShare: null,
    warmUp: 3,
    learnedRate: null,
    rateLoweredAt: null,
    rateRaisedAt: null,
    consecutiveFailures: 0,
    refusals: 0,
    circuitOpened: 1,
    circuitOpenUntil: Date.UTC(2099, 0),
    circuitReason: '5 × connection-refused',
  })
  const { acme } = await overviewOf(ledger)
  assert.deepEqual(acme.circuit, { until: Date.UTC(2099, 0), reason: '5 × connection-refused' })
  assert.deepEqual(acme.canary, { good: 3, of: WARM })
  assert.match(
    merchantsText([acme]),
    /circuit is open until 2099-01-01 00:00:00.000Z: 5 × connection-refused/,
  )

  await pauseMerchant(ledger.db, { merchantId: 'acme', by: 'asha', reason: 'audit', feeEstimate: null })
  const { acme: paused } = await overviewOf(ledger)
  assert.deepEqual([paused.paused?.pausedBy, paused.paused?.pausedReason], ['asha', 'audit'])
  assert.match(merchantsText([paused]), /acme +paused .*\n\nacme was paused by asha at .*: audit/)

  await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], { by: 'meera', reason: 'disk lost' })
  const { acme: fenced } = await overviewOf(ledger)
  assert.match(
    merchantsText([fenced]),
    /acme +recovering .*\n\nacme is fenced until payoutd recover ends, by meera since .*: disk lost/,
  )
})

test('a circuit that opened because payouts were sent too late suggests a cause', () => {
  assert.match(
    circuitText('acme', { until: 0, reason: '5 × lease-ended' }),
    /: 5 × lease-ended, too late to send: the process was stalled, or the dialect's leaseMs is too short$/,
  )
})

const sendNone = sql<object>`update payouts set ready = false`
const turnedAway = sql<object>`update payouts set reason = 'later' where state = 'unknown'`
const toBeCancelled = sql<object>`update payouts set cancel_request = 'asha: wrong'`

test('a circuit whose time is over is shown as long as something waits to be sent', async (t) => {
  const ledger = await busy(t)
  await ledger.db.run(saveCircuit, {
    merchantId: 'acme',
    available: null,
    claimedTotal: paise(0n),
    feeEstimate: paise(0n),
    feeShare: null,
    warmUp: WARM,
    learnedRate: null,
    rateLoweredAt: null,
    rateRaisedAt: null,
    consecutiveFailures: 0,
    refusals: 0,
    circuitOpened: 1,
    circuitOpenUntil: Date.UTC(2020, 0),
    circuitReason: 'long ago',
  })
  const { acme } = await overviewOf(ledger)
  assert.deepEqual([acme.circuit, acme.canary], [{ until: null, reason: 'long ago' }, null])
  assert.match(
    merchantsText([acme]),
    /acme +not accepted .*\n\nacme's gateway has accepted none of the latest payouts: long ago/,
  )
  await ledger.db.run(sendNone, {})
  assert.equal((await overviewOf(ledger)).acme.circuit, null)
  await ledger.db.run(turnedAway, {})
  assert.notEqual((await overviewOf(ledger)).acme.circuit, null, 'it will be sent again')
  await ledger.db.run(toBeCancelled, {})
  assert.equal((await overviewOf(ledger)).acme.circuit, null)
})

test('a gateway that has refused everything in a canary is told to people, and what did not open the circuit is not the reason', async (t) => {
  const ledger = await busy(t)
  const told = async (refusals: number, circuitOpened = 0) => {
    await ledger.db.run(saveCircuit, {
      ...{
        merchantId: 'acme',
        available: null,
        claimedTotal: paise(0n),
        feeEstimate: paise(0n),
        feeShare: null,
        warmUp: 0,
        refusals,
      },
      ...{
        learnedRate: null,
        rateLoweredAt: null,
        rateRaisedAt: null,
        consecutiveFailures: 1,
        circuitOpened,
        circuitOpenUntil: null,
        circuitReason: '1 × timeout',
      },
    })
    return (await overviewOf(ledger)).acme.circuit
  }
  assert.equal(await told(19), null)
  assert.deepEqual(await told(25), { until: null, reason: '25 × refused' })
  assert.deepEqual(await told(25, 1), { until: null, reason: '1 × timeout' }, 'it opened the circuit')
})
