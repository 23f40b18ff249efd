import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  ACCOUNT,
  accepted,
  attemptOf,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
} from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { fencedMerchants } from '../../ledger/ledger.ts'
import { resolvePayout } from '../../operators/resolve-payout.ts'
import { reversePayout } from '../../operators/reversal.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { claim } from '../dispatch/claim.ts'
import { recordAnswers } from '../dispatch/record-answers.ts'
import { applyEvidenceBatch } from './outcomes.ts'

const POLICY = { ...QUERY_POLICY, duplicatesRefused: true }
const KEY = { merchantId: 'acme', payoutId: 'p' }
const WHO = { by: 'asha', reason: 'the bank says so' }
const HERE = 'here'
const THERE = 'there'
const amount = paise(10_000n)
const exchange = {}
const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: '', balanceShort: false, exchange },
}
const NOT_SENT: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const TIMEOUT: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange }
const acceptedAs = (agentpayOrderId: string): ApplyAnswer => ({
  ...{ kind: 'accepted', agentpayOrderId, fee: paise(500n), status: 'processing', exchange },
})

const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', ${'accountId'}, '')`
const addKey = sql<{ accountId: string; keyFingerprint: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', ${'keyFingerprint'}, '')`
const addAttemptThere = sql<object>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, settings_hash, lease_until)
  select merchant_id, payout_id, 0, order_no, owner, 'h9', lease_until from attempts`
const putBackAttempt = sql<object>`
  with lost as (
    insert into attempts (merchant_id, payout_id, attempt, order_no, owner, settings_hash, lease_until)
    select merchant_id, payout_id, 0, order_no, 'recovery', null, now() from payouts
  )
  update payouts set doubted = true, turned_away = true`
const mayBeAnywhere = sql<object>`update payouts set account_id = null`
const expire = sql<object>`update payouts set state = 'review', reason = 'expired', ready = false, due_at = null`
const makeReady = sql<object>`update payouts set ready = true where state = 'queued'`
const known = sql<object, { accountId: string | null; agentpayOrderId: string | null; utr: string | null }>`
  select account_id, agentpay_order_id, utr from payouts`
const onTopic = sql<{ topic: string }, { value: Buffer }>`
  select value from ${outboxMessages} where topic = ${'topic'} order by position, n`

/** `p` of ₹100, of a merchant with an account `here`; the account `there` was in force before. */
async function world(t: TestContext) {
  const { ledger, config, codec } = await testLedger(t)
  const { db, topics } = ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await db.run(addSettings, ACCOUNT)
  await db.run(addSettings, { accountId: THERE, settingsHash: 'h9' })
  await accepted(ledger, config, [command('p', { amount })])
  const deps = {
    ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log: silentLogger },
    counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
  }
  const [stored] = await payoutsOf(ledger)
  const mchOrderNo = stored?.orderNo ?? assert.fail('there is no payout')
  const reported = (status: OrderReport['status'], fields: Partial<OrderReport>): OrderReport => ({
    ...{ mchOrderNo, agentpayOrderId: null, status, amount, fee: null, utr: null, errorMessage: null },
    ...{ exchange: { note: `${status} ${Object.values(fields).join(' ')}` }, ...fields },
  })
  const answer = async (attempt: number, said: ApplyAnswer) =>
    recordAnswers([{ ...(await attemptOf(ledger, 'p', attempt)), answer: said, tell: false }], deps)
  const send = async () => {
    await db.run(makeReady, {})
    await setBalance(db, 'acme', 10n ** 12n)
    const { wave } = await claim(ledger, {
      ...{ merchantId: 'acme', atMost: 1, owner: 'me', leaseMs: 60_000, sealing: config.sealing },
      ...{ account: ACCOUNT, fingerprintKey: config.fingerprintKey },
      limits: { maxInFlight: 64, ratePerSecond: null },
    })
    assert.equal(wave.length, 1)
  }
  return {
    ...{ db, send, answer },
    /** Sends it; the gateway accepts it as AP1. */
    async sendOnce() {
      await send()
      await answer(1, acceptedAs('AP1'))
    },
    callback: (
      status: OrderReport['status'],
      fields: Partial<OrderReport> = {},
      accountId = HERE,
      keyFingerprint = 'other',
    ) =>
      applyEvidenceBatch(
        [
          {
            ...{
              merchantId: 'acme',
              mchOrderNo,
              source: 'CALLBACK',
              accountIds: [accountId],
              keyFingerprint,
            },
            report: reported(status, fields),
          },
        ],
        deps,
      ),
    query: (status: OrderReport['status'], fields: Partial<OrderReport>) =>
      applyEvidenceBatch(
        [
          {
            ...{ merchantId: 'acme', mchOrderNo, source: 'QUERY', ...ACCOUNT, queryPolicy: POLICY },
            answer: { kind: 'found', report: reported(status, fields) },
            ...{ askedAt: systemClock.now(), presence: true },
          },
        ],
        deps,
      ),
    /** The gateway does not find it. */
    absent: () =>
      applyEvidenceBatch(
        [
          {
            ...{ merchantId: 'acme', mchOrderNo, source: 'QUERY', ...ACCOUNT, queryPolicy: POLICY },
            answer: { kind: 'not-found', exchange },
            ...{ askedAt: systemClock.now() + 1_000, presence: true },
          },
        ],
        deps,
      ),
    /** Without naming anybody. */
    async resend() {
      const terms = { ...ACCOUNT, ...ACCOUNT.promises, deadlineMs: 60_000 }
      const again = { kind: 'resend', attempt: 0, confirmedAbsentBy: null, deadline: null } as const
      const resolution = { ...again, cancelRequest: null, terms }
      const outcome = await resolvePayout({ ...KEY, ...WHO, resolution, shown: null }, ledger)
      return outcome.kind === 'refused' ? outcome.refusal : outcome.kind
    },
    callItPaid: async (utr: string) =>
      (await resolvePayout({ ...KEY, ...WHO, resolution: { kind: 'paid', utr }, shown: null }, ledger)).kind,
    reverse: async () => (await reversePayout({ ...KEY, ...WHO, anomalyId: null, shown: null }, ledger)).kind,
    fenced: async () => [...(await fencedMerchants(db))],
    state: async () => (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason])[0],
    known: async () => (await db.run(known, {}))[0],
    async results() {
      const written = (await db.run(onTopic, { topic: topics.results })).map(({ value }) =>
        codec.decode(value),
      )
      return (await Promise.all(written)).map((decoded) => {
        assert.ok(decoded.kind === 'decoded')
        const { status, agentpayOrderId, utr, fee } = decoded.value as Record<string, unknown>
        return [status, agentpayOrderId, utr, fee]
      })
    },
  }
}

for (const status of ['processing', 'failed'] as const)
  test(`after a "later" here, an account where no attempt was made reports ${status}: the ledger lost one, and the merchant is fenced`, async (t) => {
    const { send, answer, absent, callback, fenced, state, known } = await world(t)
    await send()
    await answer(1, LATER)
    await absent()
    await callback(status, { agentpayOrderId: 'AP9' }, THERE)
    assert.deepEqual(await fenced(), ['acme'])
    assert.deepEqual(await state(), ['review', 'never-sent'])
    assert.deepEqual(await known(), { accountId: null, agentpayOrderId: null, utr: null })
  })

describe('a callback by a key that the settings know at another address', () => {
  const paidBy = async (
    t: TestContext,
    keys: readonly (readonly [string, string])[],
    agentpayOrderId = 'AP1',
  ) => {
    const { db, sendOnce, callback, fenced, state } = await world(t)
    for (const [accountId, keyFingerprint] of keys)
      await db.run(addKey, { accountId, keyFingerprint, settingsHash: `${accountId} ${keyFingerprint}` })
    await sendOnce()
    await callback('success', { agentpayOrderId, utr: 'U1' }, THERE, 'key')
    return [await fenced(), (await state())?.[0]]
  }

  test('is about the order here if the account here had the key: a gateway that moves keeps its keys', async (t) => {
    assert.deepEqual(
      await paidBy(t, [
        [HERE, 'key'],
        [THERE, 'key'],
      ]),
      [[], 'paid'],
    )
  })

  test('is about the order here if the address there had a key of the account here before', async (t) => {
    assert.deepEqual(
      await paidBy(t, [
        [HERE, 'old'],
        [THERE, 'old'],
        [THERE, 'key'],
      ]),
      [[], 'paid'],
    )
  })

  test('shows no lost attempt if it names the order here: the gateway moved and changed its key at once', async (t) => {
    assert.deepEqual(
      await paidBy(t, [
        [HERE, 'old'],
        [THERE, 'key'],
      ]),
      [[], 'processing'],
    )
  })

  test('is about another order otherwise, which the ledger lost', async (t) => {
    assert.deepEqual(
      await paidBy(
        t,
        [
          [HERE, 'old'],
          [THERE, 'key'],
        ],
        'AP9',
      ),
      [['acme'], 'processing'],
    )
  })
})

test('the number of an order at another account is not taken for that of the latest attempt', async (t) => {
  const { db, send, callback, known, state } = await world(t)
  await send()
  await db.run(addAttemptThere, {})
  await callback('processing', { agentpayOrderId: 'AP9' }, THERE)
  assert.deepEqual(await state(), ['processing', null])
  assert.deepEqual(await known(), { accountId: HERE, agentpayOrderId: null, utr: null })
})

test('an order that a callback names before the next attempt is answered may be another, so the failure of that attempt ends nothing', async (t) => {
  const { send, answer, absent, callback, query, state, results } = await world(t)
  await send()
  await answer(1, LATER)
  await absent()
  await send()
  await callback('processing', { agentpayOrderId: 'AP1' })
  await answer(2, acceptedAs('AP2'))
  await query('failed', { agentpayOrderId: 'AP2' })
  assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
  assert.deepEqual(await results(), [])
})

const OTHER_AMOUNT = ['as paid with another amount', 'success', { amount: paise(9_900n), utr: 'U9' }] as const
const UNLISTED = ['under an unlisted status', 'unlisted', { unlisted: '5' }] as const
for (const [what, first, [how, status, fields]] of [
  ['is not known yet', TIMEOUT, OTHER_AMOUNT],
  ['is not known yet', TIMEOUT, UNLISTED],
  ['is known', acceptedAs('AP1'), OTHER_AMOUNT],
] as const)
  test(`an order that is reported ${how} may be another than the one that was sent, whose number ${what}, so its failure ends nothing`, async (t) => {
    const { send, answer, callback, query, state, results } = await world(t)
    await send()
    await answer(1, first)
    await callback(status, { ...fields, agentpayOrderId: 'AP9' })
    await query('failed', { agentpayOrderId: 'AP1' })
    assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
    assert.deepEqual(await results(), [])
  })

test('a person’s payment of an order besides has neither the number nor the fee of the known one, whose failure confirms no return', async (t) => {
  const { sendOnce, callback, query, callItPaid, reverse, results } = await world(t)
  await sendOnce()
  await callback('success', { agentpayOrderId: 'AP2', utr: 'U2', fee: paise(900n) })
  await query('failed', { agentpayOrderId: 'AP1' })
  assert.equal(await callItPaid('U2'), 'resolved')
  await callback('failed', { agentpayOrderId: 'AP1' })
  assert.equal(await reverse(), 'no-word')
  assert.deepEqual(await results(), [['PAID', null, 'U2', null]])
})

for (const how of ['callback', 'query'] as const)
  test(`once the known order has failed (${how}), a payment of an order besides ends the payout`, async (t) => {
    const { sendOnce, callback, query, state, results } = await world(t)
    await sendOnce()
    await callback('processing', { agentpayOrderId: 'AP2' })
    await callback('success', { agentpayOrderId: 'AP2', utr: 'U2' })
    assert.deepEqual(await state(), ['processing', null])
    await { callback, query }[how]('failed', { agentpayOrderId: 'AP1' })
    assert.deepEqual(await results(), [])
    await callback('success', { agentpayOrderId: 'AP2', utr: 'U2' })
    assert.deepEqual(await results(), [['PAID', 'AP2', 'U2', null]])
  })

test('a payment without a number, beside an order besides, is not taken for that of the known order, whose failure confirms no return', async (t) => {
  const { sendOnce, callback, reverse, results } = await world(t)
  await sendOnce()
  await callback('processing', { agentpayOrderId: 'AP2' })
  await callback('success', { utr: 'U2' })
  await callback('failed', { agentpayOrderId: 'AP1' })
  assert.equal(await reverse(), 'no-word')
  assert.deepEqual(await results(), [['PAID', null, 'U2', null]])
})

test('a failure without a number, beside an order besides, does not confirm that the payment came back', async (t) => {
  const { sendOnce, callback, reverse, state } = await world(t)
  await sendOnce()
  await callback('processing', { agentpayOrderId: 'AP2' })
  await callback('success', { agentpayOrderId: 'AP1', utr: 'U1' })
  await callback('failed')
  assert.deepEqual(await state(), ['paid', null])
  assert.equal(await reverse(), 'no-word')
})

test('a payment without a number, beside an order besides, adds no UTR to that of the known order', async (t) => {
  const { sendOnce, callback, known } = await world(t)
  await sendOnce()
  await callback('processing', { agentpayOrderId: 'AP2' })
  await callback('success', { agentpayOrderId: 'AP1' })
  await callback('success', { utr: 'U2' })
  assert.deepEqual(await known(), { accountId: HERE, agentpayOrderId: 'AP1', utr: null })
})

test('a payout that was never sent, and that the gateway calls paid, is not sent again without a name', async (t) => {
  const { callback, resend, state } = await world(t)
  await callback('success', { agentpayOrderId: 'AP9', utr: 'U9' })
  assert.deepEqual(await state(), ['review', 'never-sent'])
  assert.deepEqual(await resend(), { kind: 'gateway-had-it', agentpayOrderId: null })
})

for (const [where, accountId, setUp] of [
  ['that may be alive here', HERE, null],
  ['that may be alive at any account', null, mayBeAnywhere],
] as const)
  test(`a late answer of an earlier attempt there does not name the only account of a waiting payout ${where}`, async (t) => {
    const { db, send, answer, absent, callback, state, known, results } = await world(t)
    await send()
    await answer(1, TIMEOUT)
    await absent()
    await db.run(addAttemptThere, {})
    if (setUp) await db.run(setUp, {})
    await answer(0, acceptedAs('AP9'))
    assert.deepEqual(await state(), ['review', 'order-shown'])
    assert.deepEqual(await known(), { accountId, agentpayOrderId: null, utr: null })
    await callback('failed', { agentpayOrderId: 'AP9' }, THERE)
    assert.deepEqual(await results(), [])
    await callback('success', { agentpayOrderId: 'AP1', utr: 'U1' })
    assert.deepEqual(await known(), { accountId: HERE, agentpayOrderId: 'AP1', utr: 'U1' })
  })

test('a late acceptance of an attempt that a recovery put back is an order besides, so the failure of the known attempt ends nothing', async (t) => {
  const { db, send, answer, absent, callback, state, known, results } = await world(t)
  await send()
  await answer(1, TIMEOUT)
  await absent()
  await db.run(putBackAttempt, {})
  await answer(0, acceptedAs('AP9'))
  assert.deepEqual(await state(), ['review', 'order-shown'])
  assert.deepEqual(await known(), { accountId: HERE, agentpayOrderId: null, utr: null })
  await callback('failed')
  assert.deepEqual(await results(), [])
})

for (const [how, late] of [
  ['that the gateway has the order', { kind: 'duplicate', code: 'DUP', exchange }],
  ['of an acceptance without a number', { kind: 'unknown', reason: 'no-order-id', exchange }],
] as const)
  test(`a late answer ${how}, to an attempt that a recovery put back, is an order besides, so the failure of the known attempt ends nothing`, async (t) => {
    const { db, send, answer, callback, query, state, known, results } = await world(t)
    await send()
    await db.run(putBackAttempt, {})
    await answer(0, late)
    await answer(1, acceptedAs('AP1'))
    assert.deepEqual(await known(), { accountId: HERE, agentpayOrderId: 'AP1', utr: null })
    await query('failed', { agentpayOrderId: 'AP1' })
    assert.deepEqual(await state(), ['review', 'failed-in-doubt'])
    assert.deepEqual(await results(), [])
    await callback('success', { agentpayOrderId: 'AP9', utr: 'U9' }, THERE)
    assert.deepEqual(await state(), ['paid', null])
  })

for (const status of ['failed', 'processing'] as const)
  test(`a payout in review that was never sent, and that the gateway calls ${status}, shows that the ledger lost an attempt`, async (t) => {
    const { db, send, answer, callback, fenced, state, results } = await world(t)
    await send()
    await answer(1, NOT_SENT)
    await db.run(expire, {})
    await callback(status, { agentpayOrderId: 'AP9' }, THERE)
    assert.deepEqual(await fenced(), ['acme'])
    assert.deepEqual(await state(), ['review', 'expired'])
    assert.deepEqual(await results(), [])
  })
