import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { accepted, payoutsOf, testLedger } from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import { POLICY, payinLedger } from '../../test/payins.ts'
import type { Config } from '../config/config.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { DECISIONS } from '../domain/decisions.ts'
import { parsePayinCallback, parsePayoutCallback } from '../gateway/callbacks/callback.ts'
import { signature } from '../gateway/wire/sign.ts'
import { BEYOND, MOST_OPEN } from '../ledger/anomalies.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { acknowledgeAnomalies, previewAcknowledge } from '../operators/acknowledge.ts'
import { cancelPayouts } from '../operators/cancel-payouts.ts'
import { accept, decided, submit } from '../operators/operations.fixture.ts'
import { reversePayout } from '../operators/reversal.ts'
import { applyPayinEvidenceBatch as settlePayins } from '../payins/outcomes.ts'
import { silentLogger } from '../platform/log.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { applyEvidenceBatch } from '../stages/outcomes/outcomes.ts'
import { anomalyListText, anomalyText } from '../views/anomaly-text.ts'
import { findAnomaly } from './anomalies.ts'
import { anomaliesOf, openAnomalies } from './sql/anomalies.ts'

const REQUEST = { merchantId: 'acme', by: 'asha', reason: 'a test of theirs' }
const ACCOUNT = '50100123456789'
/** The UTR of a second payment. */
const SECOND = '632611209999'

/** A callback that the gateway signed. */
function signed(fields: Record<string, string>, config: Config): string {
  const { dialect, key } = config.merchants.get('acme') ?? assert.fail('no merchant')
  const sign = signature(new Map(Object.entries(fields)), key, dialect.sign, 'callbacks')
  return new URLSearchParams({ ...fields, sign }).toString()
}

/** Payouts of ₹50,000 that the gateway has: `p-1` is paid, `p-2` under way, and `p-3` was never sent. */
async function payouts(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  await accepted(
    ledger,
    config,
    ['p-1', 'p-2', 'p-3'].map((id) => command(id)),
  )
  for (const id of ['p-1', 'p-2']) {
    await decided(ledger, id, submit)
    await decided(ledger, id, accept)
  }
  const orders = new Map((await payoutsOf(ledger)).map(({ payoutId, orderNo }) => [payoutId, orderNo]))
  const call = async (payoutId: string, fields: Record<string, string>) => {
    const { dialect, key } = config.merchants.get('acme') ?? assert.fail('no merchant')
    const mchOrderNo = orders.get(payoutId) ?? 'PNOBODYKNOWS'
    const all = { amount: '5000000', mchOrderNo, agentpayOrderId: `AP-${payoutId}`, ...fields }
    const parsed = parsePayoutCallback(signed(all, config), dialect, key)
    assert.ok(parsed.kind === 'verified')
    const counted = new Metrics().counter('evidence_total', 'test', ['source', 'outcome'])
    const said = { source: 'CALLBACK', report: parsed.report, accountIds: ['here'] } as const
    await applyEvidenceBatch([{ merchantId: 'acme', mchOrderNo, ...said }], {
      ledger,
      decisions: DECISIONS,
      queryPolicies: new Map([['acme', POLICY]]),
      counted,
      log: silentLogger,
    })
    return all
  }
  await call('p-1', { status: '2' })
  return { ledger, config, call }
}

const published = sql<{ topic: string }, { eventId: string }>`
  select event_id from ${outboxMessages} where topic = ${'topic'} order by position, n`

const exchanges = sql<object, { said: string }>`select exchange::text as said from anomalies order by at`

/** Somebody acknowledges `first`; then `second` reports a payment; repeating both changes nothing. */
async function twoAnomalies(ledger: Ledger, first: () => Promise<unknown>, second: () => Promise<unknown>) {
  await first()
  const { anomalyId } = await only(ledger)
  await acknowledgeAnomalies({ ...REQUEST, anomalyIds: [anomalyId] }, ledger.db)
  await second()
  await second()
  await first()
  const said = await ledger.db.run(exchanges, {})
  assert.deepEqual(
    said.map(({ said }) => said.includes(SECOND)),
    [false, true],
  )
  assert.equal((await ledger.db.run(published, { topic: ledger.topics.anomalies })).length, 2)
  assert.deepEqual(
    (await ledger.db.run(openAnomalies, {})).map(({ count }) => count),
    [1],
  )
}

/** The same fields in the form in which the ledger may keep them. */
const masked = (fields: Record<string, string>) =>
  'errorMessage' in fields ? { ...fields, errorMessage: 'account ••••6789 is closed' } : fields

/** The only anomaly, whole; it was published under its id. */
async function only(ledger: Ledger) {
  const anomalies = await ledger.db.run(anomaliesOf, { merchantId: 'acme', limit: 10 })
  assert.equal(anomalies.length, 1)
  const anomalyId = anomalies[0]?.anomalyId ?? ''
  assert.deepEqual(await ledger.db.run(published, { topic: ledger.topics.anomalies }), [
    { eventId: anomalyId },
  ])
  return (await findAnomaly(ledger.db, 'acme', anomalyId)) ?? assert.fail('it is gone')
}

const aDayAgo = sql<object>`
  update anomalies set at = at - interval '25 hours', last_at = last_at - interval '25 hours'`

for (const wasTried of [true, false])
  test(`a reader who learns that a payout was paid though it was cancelled ${wasTried ? 'behind an attempt that sent nothing' : 'untried'} learns whom to inform`, async (t) => {
    const { ledger, call } = await payouts(t)
    if (wasTried) await decided(ledger, 'p-3', submit)
    if (wasTried)
      await decided(ledger, 'p-3', (payout, now) =>
        DECISIONS.recordApply(
          payout,
          1,
          { kind: 'not-sent', reason: 'ECONNREFUSED', exchange: {} } as never,
          POLICY,
          now,
        ),
      )
    await cancelPayouts({ ...REQUEST, payoutIds: ['p-3'] }, ledger)
    await call('p-3', { status: '2' })
    assert.match(
      anomalyText(await only(ledger)),
      /\n {2}payoutd published it as cancelled, so whoever requested it may pay it again: /,
    )
  })

test('a report that the gateway repeats after a day is open again, though somebody had acknowledged it', async (t) => {
  const { ledger, call } = await payouts(t)
  const { db } = ledger
  const isOpen = async () => (await db.run(openAnomalies, {})).length > 0
  await call('p-1', { status: '3' })
  const { anomalyId } = await only(ledger)
  await acknowledgeAnomalies({ ...REQUEST, anomalyIds: [anomalyId] }, db)
  await call('p-1', { status: '3' })
  assert.equal(await isOpen(), false)
  await db.run(aDayAgo, {})
  await call('p-1', { status: '3' })
  assert.equal(await isOpen(), true)

  const reverse = { ...REQUEST, payoutId: 'p-1', anomalyId: null, shown: null }
  assert.equal((await reversePayout(reverse, ledger)).kind, 'reversed')
  await db.run(aDayAgo, {})
  await call('p-1', { status: '3' })
  assert.equal(await isOpen(), false)
})

describe('evidence that cannot be true is kept whole, with bank details masked, and published', () => {
  for (const [kind, payoutId, fields] of [
    ['contradiction', 'p-1', { status: '3', errorMessage: `account ${ACCOUNT} is closed` }],
    ['amount-mismatch', 'p-2', { status: '2', amount: '200' }],
    ['order-id-mismatch', 'p-2', { status: '2', agentpayOrderId: 'AP-other' }],
    ['unlisted-status', 'p-2', { status: '7' }],
    ['never-sent', 'p-3', { status: '2' }],
    ['unknown-order', 'p-9', { status: '2' }],
  ] as const) {
    test(`of a payout: ${kind}`, async (t) => {
      const { ledger, call } = await payouts(t)
      const said = await call(payoutId, fields)
      const found = await only(ledger)
      assert.deepEqual([found.kind, found.source], [kind, 'CALLBACK'])
      assert.equal(found.payoutId, payoutId === 'p-9' ? null : payoutId)
      assert.deepEqual(found.exchange, { request: masked(said) })
    })

    test(`of a payout: ${kind}, and then the same with another UTR, is kept and published too`, async (t) => {
      const { ledger, call } = await payouts(t)
      const paid = { ...fields, channelPayNo: SECOND }
      await twoAnomalies(
        ledger,
        () => call(payoutId, fields),
        () => call(payoutId, paid),
      )
    })
  }

  for (const [kind, fields] of [
    ['contradiction', { status: '3', errorMessage: `account ${ACCOUNT} is closed` }],
    ['amount-mismatch', { status: '2', amount: '200' }],
    ['order-id-mismatch', { status: '2', payOrderId: 'PO-other' }],
    ['merchant-mismatch', { status: '2', mchId: '1000999' }],
    ['unknown-order', { status: '2', mchOrderNo: 'CNOBODYKNOWS' }],
  ] as const) {
    const payins = async (t: TestContext) => {
      const { ledger, config, outcomeDeps, create } = await payinLedger(t)
      const payin = await create('order-7')
      const { dialect, key, mchId } = config.merchants.get('acme') ?? assert.fail('no merchant')
      const call = async (fields: Record<string, string>) => {
        const { payinId, payOrderId } = payin
        const usual = { amount: '50000', mchId, mchOrderNo: payinId, payOrderId: payOrderId ?? '' }
        const all = { ...usual, ...fields }
        const parsed = parsePayinCallback(signed(all, config), dialect, key)
        assert.ok(parsed.kind === 'verified')
        const { report } = parsed
        const said = { source: 'CALLBACK', report, accountIds: ['here'] } as const
        await settlePayins([{ merchantId: 'acme', payinId: report.mchOrderNo, ...said }], outcomeDeps)
        return all
      }
      await call({ status: '2' })
      return { ledger, payin, call }
    }

    test(`of a payin: ${kind}`, async (t) => {
      const { ledger, payin, call } = await payins(t)
      const said = await call(fields)
      const found = await only(ledger)
      assert.deepEqual([found.kind, found.payoutId], [kind, null])
      assert.equal(found.orderNo, 'mchOrderNo' in fields ? fields.mchOrderNo : payin.payinId)
      assert.deepEqual(found.exchange, { request: masked(said) })
    })

    test(`of a payin: ${kind}, and then the same with another UTR, is kept and published too`, async (t) => {
      const { ledger, call } = await payins(t)
      const paid = { ...fields, channelPayNo: SECOND }
      await twoAnomalies(
        ledger,
        () => call(fields),
        () => call(paid),
      )
    })
  }
})

test('a gateway that reports something else each time fills no table; beyond the bound, payoutd counts its reports and shows the number', async (t) => {
  const { ledger, call } = await payouts(t)
  const say = async (from: number, to: number) => {
    for (let i = from; i < to; i++) await call('p-1', { status: '3', channelPayNo: `UTR${i}` })
  }
  const kept = async () => {
    const all = await ledger.db.run(anomaliesOf, { merchantId: 'acme', limit: 100 })
    const beyond = all.filter(({ detail }) => detail === BEYOND)
    return { own: all.length - beyond.length, beyond: beyond.map(({ times }) => times), all }
  }
  const acknowledge = async (which: (anomaly: { detail: string }) => boolean) => {
    const anomalyIds = (await kept()).all.filter(which).map(({ anomalyId }) => anomalyId)
    await acknowledgeAnomalies({ ...REQUEST, anomalyIds }, ledger.db)
  }
  const saidBeyond = async () => {
    const { anomalyId } = (await kept()).all.find(({ detail }) => detail === BEYOND) ?? assert.fail('none')
    return (await findAnomaly(ledger.db, 'acme', anomalyId))?.exchange?.request?.channelPayNo
  }
  await say(0, MOST_OPEN + 5)
  await say(0, 1)
  const { own, beyond } = await kept()
  assert.deepEqual([own, beyond], [MOST_OPEN, [5]])
  assert.equal(await saidBeyond(), `UTR${MOST_OPEN + 4}`)
  assert.equal((await ledger.db.run(published, { topic: ledger.topics.anomalies })).length, MOST_OPEN + 1)
  await call('p-2', { status: '3', amount: '100' })
  assert.equal((await kept()).own, MOST_OPEN + 1)

  const ids = (await kept()).all.filter(({ detail }) => detail === BEYOND).map(({ anomalyId }) => anomalyId)
  const request = { ...REQUEST, anomalyIds: ids }
  const shown = await previewAcknowledge(request, ledger.db)
  await say(90, 91)
  const [outcome] = await acknowledgeAnomalies({ ...request, shown }, ledger.db)
  assert.deepEqual(outcome, { anomalyId: ids[0], kind: 'more', times: 6 })

  await acknowledge(({ detail }) => detail === BEYOND)
  await say(100, 102)
  assert.deepEqual((await kept()).beyond.toSorted(), [2, 6])
  await acknowledge(() => true)
  await say(200, 201)
  assert.equal((await kept()).own, MOST_OPEN + 2)
})

test('anomalies that nobody has acknowledged come first, the oldest first', async (t) => {
  const { ledger, call } = await payouts(t)
  for (const amount of ['200', '300', '400']) await call('p-2', { status: '2', amount })
  const listed = () => ledger.db.run(anomaliesOf, { merchantId: 'acme', limit: 10 })
  const [first, second, third] = (await listed()).map(({ anomalyId }) => anomalyId)
  assert.ok(first && second && third)
  await acknowledgeAnomalies({ ...REQUEST, anomalyIds: [first] }, ledger.db)
  await acknowledgeAnomalies({ ...REQUEST, anomalyIds: [second] }, ledger.db)
  assert.deepEqual(
    (await listed()).map(({ anomalyId }) => anomalyId),
    [third, second, first],
  )
  const text = anomalyListText(await listed())
  assert.match(text, /^ {2}ANOMALY .*\n.* amount-mismatch {2}p-2 +no .*\n.* by asha .*\n.* by asha /)
})

test('an acknowledged anomaly shows who acknowledged it, when and why; a second time changes nothing', async (t) => {
  const { ledger, call } = await payouts(t)
  await call('p-2', { status: '2', amount: '200' })
  const { anomalyId } = await only(ledger)
  const ask = { ...REQUEST, anomalyIds: [anomalyId, 'nonsense', anomalyId] }
  const unknown = { anomalyId: 'nonsense', kind: 'unknown' }
  const acknowledged = { anomalyId, kind: 'acknowledged', times: 1 }
  assert.deepEqual(await previewAcknowledge(ask, ledger.db), [acknowledged, unknown])
  assert.equal((await only(ledger)).acknowledgedAt, null)
  assert.match(anomalyText(await only(ledger)), /not acknowledged\n +callback {2}.*amount=200/)
  assert.deepEqual(await acknowledgeAnomalies(ask, ledger.db), [acknowledged, unknown])
  const { acknowledgedAt: at } = await only(ledger)
  assert.deepEqual(await acknowledgeAnomalies({ ...ask, by: 'meera', anomalyIds: [anomalyId] }, ledger.db), [
    { anomalyId, kind: 'already', by: 'asha', at },
  ])
  assert.match(anomalyText(await only(ledger)), /acknowledged by asha at \S+ \S+Z: a test of theirs\n/)
  assert.deepEqual(await ledger.db.run(openAnomalies, {}), [])
})

test('another merchant can neither see nor acknowledge it', async (t) => {
  const { ledger, call } = await payouts(t)
  await call('p-2', { status: '2', amount: '200' })
  const { anomalyId } = await only(ledger)
  assert.equal(await findAnomaly(ledger.db, 'bolt', anomalyId), undefined)
  const request = { ...REQUEST, merchantId: 'bolt', anomalyIds: [anomalyId] }
  assert.deepEqual(await acknowledgeAnomalies(request, ledger.db), [{ anomalyId, kind: 'unknown' }])
  assert.equal((await only(ledger)).acknowledgedAt, null)
})
