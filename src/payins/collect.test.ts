import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, accepted as acceptedPayouts, upsertMerchant } from '../../test/ledger.ts'
import {
  accepted,
  brokenPayins,
  outboxOf,
  POLICY,
  payinLedger,
  REQUEST,
  report,
  storedPayins,
  timeout,
} from '../../test/payins.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import type { PayinRecoverAnswer } from '../domain/payin/gateway-answers.ts'
import type { PayinRecovery } from '../gateway/calls/payin-recovery.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { balanceWatermark, saveBalance } from '../stages/dispatch/sql/funds.ts'
import { type Created, createPayin, recoverPayin } from './collect.ts'
import { applyPayinEvidenceBatch } from './outcomes.ts'

const WANTED = { merchantId: 'acme', idempotencyKey: 'order-7', request: REQUEST, traceparent: null }

test('requests with the same key call the gateway once, however often and however many at once', async (t) => {
  let calls = 0
  const { ledger, collect } = await payinLedger(t, (payinId) => {
    calls++
    return accepted(payinId)
  })
  const ask = () => createPayin(WANTED, collect)
  const all = await Promise.all(Array.from({ length: 20 }, ask))
  const again = await ask()
  assert.equal(calls, 1)
  assert.deepEqual(all.filter(({ kind }) => kind === 'created').length, 1)
  assert.ok(again.kind === 'repeated' && again.payin.state === 'open')
  assert.deepEqual(again.payin.checkout, { ...again.payin.checkout, payMethod: 'urlJump' })
  const stored = await ledger.db.run(storedPayins, {})
  assert.deepEqual(
    stored.map(({ payinId, state, version }) => [payinId, state, version]),
    [[again.payin.payinId, 'open', 2]],
  )
  assert.match(again.payin.payinId, /^[A-Z0-9]{30}$/)
})

test('the same key with other content is a conflict, and calls no gateway', async (t) => {
  const { ledger, collect, create } = await payinLedger(t)
  const { payinId } = await create('order-7')
  const others = [
    { amount: paise(50_100n) },
    { accountName: null },
    { phoneNumber: '9876501235' },
    { payerEmail: null },
    { remark: 'Order 8' },
    { returnUrl: null },
  ]
  for (const other of others) {
    const created: Created = await createPayin({ ...WANTED, request: { ...REQUEST, ...other } }, collect)
    assert.deepEqual(created, { kind: 'conflict', payinId }, JSON.stringify(Object.keys(other)))
  }
  assert.equal((await ledger.db.run(storedPayins, {})).length, 1)
})

test('payoutd stores the intent before it calls the gateway, and a creation without an answer is unknown', async (t) => {
  const { ledger, collect } = await payinLedger(t)
  const seen: unknown[] = []
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  collector.create = async () => {
    seen.push(...(await ledger.db.run(storedPayins, {})).map(({ state }) => state))
    return timeout
  }
  const created = await createPayin(WANTED, collect)
  assert.deepEqual(seen, ['creating'])
  assert.ok(created.kind === 'created')
  assert.deepEqual([created.payin.state, created.payin.reason], ['unknown', 'timeout'])
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

test('a creation may leave only while the lease, by either clock, has enough left for a call', async (t) => {
  const { collect } = await payinLedger(t)
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  let at = { wall: 5_000, monotonic: 7_000 }
  const clock = { now: () => at.wall, monotonic: () => at.monotonic }
  const after = (wall: number, monotonic: number) => ({ wall: 5_000 + wall, monotonic: 7_000 + monotonic })
  const suspended = after(40_000, 0)
  const putBack = after(-3_600_000, 40_000)
  const allowed: boolean[] = []
  collector.create = async ({ mchOrderNo }, mayStillSend) => {
    for (at of [after(39_999, 39_999), suspended, putBack]) allowed.push(mayStillSend())
    return accepted(mchOrderNo)
  }
  await createPayin(WANTED, { ...collect, clock })
  assert.deepEqual(allowed, [true, false, false])
})

test('each end is one result, with the amount in paise and an id that no repeat changes', async (t) => {
  const { ledger, codec, create, outcomeDeps } = await payinLedger(t)
  const payin = await create('order-7')
  const evidence = {
    merchantId: 'acme',
    payinId: payin.payinId,
    source: 'QUERY',
    ...ACCOUNT,
    askedAt: 0,
    queryPolicy: POLICY,
    presence: false,
  } as const
  const say = (status: 'failed' | 'paid' | 'pending') =>
    applyPayinEvidenceBatch(
      [{ ...evidence, answer: { kind: 'known', report: report(payin, status) } }],
      outcomeDeps,
    )
  await say('pending')
  await say('failed')
  await say('failed')
  await say('paid')
  await say('paid')
  const rows = await ledger.db.run(outboxOf, { topic: ledger.topics.payinResults })
  const results = await Promise.all(
    rows.map(async ({ value }) => {
      const decoded = await codec.decode(value)
      assert.ok('value' in decoded)
      return decoded.value as object
    }),
  )
  const common = {
    payinId: payin.payinId,
    merchantId: 'acme',
    payOrderId: payin.payOrderId,
    amount: 50_000n,
    currency: 'INR',
    evidence: 'QUERY',
  }
  assert.deepEqual(
    results.map((result) => ({ ...result, occurredAt: undefined })),
    [
      { ...common, status: 'FAILED', utr: null, paidAt: null, reason: 'failed', version: 3 },
      {
        ...common,
        status: 'PAID',
        utr: '632611200001',
        paidAt: Date.UTC(2026, 10, 21, 12),
        reason: null,
        version: 4,
      },
    ].map((result) => ({ ...result, occurredAt: undefined })),
  )
  assert.deepEqual(
    rows.map(({ key }) => key),
    [`acme:${payin.payinId}`, `acme:${payin.payinId}`],
  )
  assert.equal(new Set(rows.map(({ eventId }) => eventId)).size, 2)
  assert.deepEqual(await ledger.db.run(brokenPayins, {}), [])
})

const snapshot = sql<object, { available: bigint | null }>`select available from merchants`

test('a paid payin makes dispatch ask for the balance again if payouts wait for funds, and only then', async (t) => {
  const { ledger, config, create, outcomeDeps } = await payinLedger(t)
  await ledger.db.run(upsertMerchant, {
    merchantId: 'acme',
    ...ACCOUNT,
    feeEstimate: 500n,
  })
  const [mark] = await ledger.db.run(balanceWatermark, { merchantId: 'acme' })
  assert.ok(mark)
  const paid = async (key: string) => {
    const payin = await create(key)
    const answer = { kind: 'known', report: report(payin, 'paid') } as const
    const { merchantId, payinId } = payin
    const asked = {
      source: 'QUERY',
      queryPolicy: POLICY,
      ...ACCOUNT,
      askedAt: 0,
      presence: false,
    } as const
    await applyPayinEvidenceBatch([{ merchantId, payinId, answer, ...asked }], outcomeDeps)
    return (await ledger.db.run(snapshot, {}))[0]?.available
  }
  await ledger.db.run(saveBalance, { merchantId: 'acme', available: 10_499n, ...mark })
  assert.equal(await paid('nothing waits'), 10_499n)
  await acceptedPayouts(ledger, config, [command('p1', { amount: paise(10_000n) })])
  assert.equal(await paid('one waits, which needs one paisa more with its fee'), null)
  await ledger.db.run(saveBalance, { merchantId: 'acme', available: 10_500n, ...mark })
  assert.equal(await paid('one waits, which is covered'), 10_500n)
})

test('a recovery uses the gateway’s own number, and the history records it', async (t) => {
  const { ledger, collect, create } = await payinLedger(t)
  const { merchantId, payinId, payOrderId } = await create('order-7')
  const asked: unknown[] = []
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  const recover = async (recovery: PayinRecovery): Promise<PayinRecoverAnswer> => {
    asked.push(recovery)
    return { kind: 'refused', code: 'UTR_USED', message: 'used', exchange: { note: 'no' } }
  }
  collector.recover = new Map([[ACCOUNT.accountId, recover]])
  const recovered = await recoverPayin({ merchantId, payinId }, '632611200009', collect)
  assert.deepEqual(asked, [{ payOrderId, utr: '632611200009' }])
  assert.ok(recovered.kind === 'answered' && recovered.answer.kind === 'refused')
  const entries = await ledger.db.run(
    sql<object, object>`select source, version from history order by at`,
    {},
  )
  assert.deepEqual(entries.at(-1), { source: 'RECOVERY', version: null })
  assert.deepEqual(await recoverPayin({ merchantId, payinId: 'CNONE' }, '1', collect), {
    kind: 'no-such-payin',
  })
})

const recoveries = sql<object, { note: string | null; dueSoon: boolean }>`
  select h.exchange->>'note' as note, p.due_at <= now() + interval '10 seconds' as due_soon
  from history h join payins p using (payin_id) where h.source = 'RECOVERY'`
const expire = sql<object>`update payins set state = 'expired', due_at = null`

test('the history records a recovery, and payoutd asks about its payin, even if the process dies while it sends', async (t) => {
  const { ledger, collect, create } = await payinLedger(t)
  const { merchantId, payinId } = await create('order-7')
  await ledger.db.run(expire, {})
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  const dies = () => Promise.reject(new Error('the process is killed here'))
  collector.recover = new Map([[ACCOUNT.accountId, dies]])
  await assert.rejects(recoverPayin({ merchantId, payinId }, '632611200009', collect))
  assert.deepEqual(await ledger.db.run(recoveries, {}), [
    { note: 'the gateway is asked to find the payment with UTR 632611200009', dueSoon: true },
  ])
})

const adopt = { merchantId: 'acme', settingsHash: 'adopted', feeEstimate: 0n }

test('once other settings are in force, a process with the former ones sends nothing and shows what there is', async (t) => {
  let calls = 0
  const { ledger, collect } = await payinLedger(t, (payinId) => {
    calls++
    return accepted(payinId)
  })
  await ledger.db.run(upsertMerchant, { ...adopt, ...ACCOUNT })
  const created = await createPayin(WANTED, collect)
  assert.ok(created.kind === 'created')
  await ledger.db.run(upsertMerchant, adopt)
  const stored = await ledger.db.run(storedPayins, {})
  assert.deepEqual(await createPayin({ ...WANTED, idempotencyKey: 'order-8' }, collect), {
    kind: 'other-settings',
  })
  assert.equal((await createPayin(WANTED, collect)).kind, 'repeated')
  assert.deepEqual(await recoverPayin(created.payin, '632611200001', collect), { kind: 'other-settings' })
  assert.deepEqual([await ledger.db.run(storedPayins, {}), calls], [stored, 1])
  assert.deepEqual(await ledger.db.run(recoveries, {}), [])
})

test('a refusal that was read by settings no longer in force ends nothing', async (t) => {
  const { ledger, collect } = await payinLedger(t)
  await ledger.db.run(upsertMerchant, { ...adopt, ...ACCOUNT })
  const collector = collect.collectors.get('acme')
  assert.ok(collector)
  const exchange = { note: 'no' }
  for (const kind of ['refused', 'retry-later'] as const) {
    collector.create = async () => {
      await ledger.db.run(upsertMerchant, adopt)
      return { kind, code: 'AMOUNT_LIMIT', message: 'too small', exchange }
    }
    const created = await createPayin({ ...WANTED, idempotencyKey: kind }, collect)
    assert.ok(created.kind === 'created')
    assert.deepEqual([created.payin.state, created.payin.reason], ['unknown', 'unlisted-code'])
    await ledger.db.run(upsertMerchant, { ...adopt, ...ACCOUNT })
  }
})
