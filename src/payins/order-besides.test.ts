import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf } from '../../test/ledger.ts'
import { outboxOf, POLICY, payinLedger, report, storedPayins } from '../../test/payins.ts'
import type { PayinReport } from '../domain/payin/gateway-answers.ts'
import { resolvePayin } from '../operators/resolve-payin.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import { applyPayinEvidenceBatch } from './outcomes.ts'

const WHO = { by: 'asha', reason: 'the bank says so' }
const HERE = 'here'
const THERE = 'there'
const CALLBACK = { mchId: null, backType: null, channelCode: null }
const UNPAID = { utr: null, paidAt: null }
const addSettings = sql<{ accountId: string; keyFingerprint: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'accountId'}, ${'accountId'}, '', '', ${'keyFingerprint'}, '')`
const expire = sql<object>`update payins set expires_at = now() - interval '1 second'`

/** An open payin at the account `here`. */
async function world(t: TestContext) {
  const { ledger, codec, outcomeDeps, create } = await payinLedger(t)
  const payin = await create('order-7')
  const about = { merchantId: 'acme', payinId: payin.payinId }
  return {
    ledger,
    callback: (
      status: PayinReport['status'],
      fields: Partial<PayinReport>,
      accountId = HERE,
      keyFingerprint = 'other',
    ) =>
      applyPayinEvidenceBatch(
        [
          {
            ...{ ...about, source: 'CALLBACK', accountIds: [accountId], keyFingerprint },
            report: { ...report(payin, status), ...CALLBACK, ...fields },
          },
        ],
        outcomeDeps,
      ),
    query: (status: PayinReport['status']) =>
      applyPayinEvidenceBatch(
        [
          {
            ...{ ...about, source: 'QUERY', queryPolicy: POLICY, ...ACCOUNT },
            ...{ askedAt: systemClock.now(), presence: true },
            answer: { kind: 'known', report: report(payin, status) },
          },
        ],
        outcomeDeps,
      ),
    callItPaid: async () =>
      (
        await resolvePayin(
          { ...about, ...WHO, resolution: { kind: 'paid', utr: '632611200002' }, shown: null },
          ledger,
        )
      ).kind,
    state: async () => (await ledger.db.run(storedPayins, {})).map(({ state, reason }) => [state, reason])[0],
    async results() {
      const written = await ledger.db.run(outboxOf, { topic: ledger.topics.payinResults })
      const all = await Promise.all(written.map(({ value }) => codec.decode(value)))
      return all.map((decoded) => {
        assert.ok(decoded.kind === 'decoded')
        const { status, payOrderId, utr } = decoded.value as Record<string, unknown>
        return [status, payOrderId, utr]
      })
    },
  }
}

for (const status of ['pending', 'paid'] as const)
  test(`another order of a payin that is ${status} leaves it to a person, and the failure of the known one does not end it`, async (t) => {
    const { ledger, callback, query, state, callItPaid, results } = await world(t)
    await callback(status, { payOrderId: 'PO2', ...(status === 'pending' && UNPAID) })
    assert.deepEqual(await anomaliesOf(ledger), ['order-id-mismatch'])
    await query('failed')
    assert.deepEqual(await state(), ['review', 'order-besides'])
    assert.deepEqual(await results(), [])
    assert.equal(await callItPaid(), 'resolved')
    assert.deepEqual(await results(), [['PAID', null, '632611200002']])
  })

test('a payin that another account calls paid is left to a person, and does not expire', async (t) => {
  const { ledger, callback, query, state, callItPaid, results } = await world(t)
  await callback('paid', { payOrderId: 'PO9' }, THERE)
  assert.deepEqual(await anomaliesOf(ledger), ['other-account'])
  await ledger.db.run(expire, {})
  await query('pending')
  assert.deepEqual(await state(), ['review', 'order-besides'])
  assert.equal(await callItPaid(), 'resolved')
  assert.deepEqual(await results(), [['PAID', null, '632611200002']])
})

test('a callback by the key of its account at another address is about the payin: a gateway that moves keeps its keys', async (t) => {
  const { ledger, callback, state } = await world(t)
  await ledger.db.run(addSettings, { accountId: HERE, keyFingerprint: 'shared' })
  await callback('paid', {}, THERE, 'shared')
  assert.deepEqual([await anomaliesOf(ledger), await state()], [[], ['paid', null]])
})

test('another order of a payin that failed leaves it open', async (t) => {
  const { callback, state } = await world(t)
  await callback('failed', { payOrderId: 'PO2' })
  assert.deepEqual(await state(), ['open', null])
})

test('a payin that ended unpaid can be called paid late by a person', async (t) => {
  const { query, state, callItPaid, results } = await world(t)
  await query('failed')
  assert.deepEqual(await state(), ['failed', 'failed'])
  assert.equal(await callItPaid(), 'resolved')
  assert.deepEqual((await results()).at(-1), ['PAID', null, '632611200002'])
})
