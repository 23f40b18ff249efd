import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Paise, paise } from '../../domain/money.ts'
import { type ApplyOrder, applySchema } from '../calls/apply.ts'
import { type PayinOrder, payinCreateSchema } from '../calls/payin-create.ts'
import { payinQuerySchema } from '../calls/payin-query.ts'
import { payinRecoverySchema } from '../calls/payin-recovery.ts'
import { querySchema } from '../calls/query.ts'
import { ORDER, PAYIN } from '../testing.ts'
import { faultsIn } from './request-rules.ts'

const broken = (schema: Parameters<typeof faultsIn>[0], request: unknown) =>
  faultsIn(schema, request).map(({ field, rule }) => `${field} ${rule}`)
const apply = (change: Partial<ApplyOrder>) => broken(applySchema, { ...ORDER, ...change })
const payin = (change: Partial<PayinOrder>) => broken(payinCreateSchema, { ...PAYIN, ...change })

test('a request within the contract has no faults, at the edges too', () => {
  assert.deepEqual(apply({}), [])
  assert.deepEqual(apply({ ifsc: null, vpa: 'asha@okaxis', accountName: null, remark: null }), [])
  assert.deepEqual(payin({}), [])
  assert.deepEqual(
    payin({ phoneNumber: null, payerEmail: null, accountName: null, returnUrl: null, remark: null }),
    [],
  )
  for (const accountName of ['Bo', 'x'.repeat(48), '😀'.repeat(48)])
    assert.deepEqual(payin({ accountName }), [])
  assert.deepEqual(payin({ mchOrderNo: 'M'.repeat(30), amount: paise(100), payerEmail: 'a.b@c' }), [])
})

test('checks each rule of the contract, for payins and payouts alike', () => {
  for (const check of [apply, payin]) {
    for (const amount of [0n, -100n]) assert.deepEqual(check({ amount: paise(amount) }), ['amount positive'])
    assert.deepEqual(check({ amount: paise(150) }), ['amount whole-rupees'])
    assert.deepEqual(check({ amount: (2n ** 53n + 1n) as Paise }), ['amount whole-rupees'])
    for (const phoneNumber of ['5876543210', '98765432101', '987654321', '+919876543210', '']) {
      assert.deepEqual(check({ phoneNumber }), ['phoneNumber phone'])
    }
    for (const payerEmail of ['a@b.in', 'asha.menon', 'asha@in', '@b.in', '']) {
      assert.deepEqual(check({ payerEmail }), ['payerEmail email'])
    }
    for (const accountName of ['A', 'x'.repeat(49), '😀'.repeat(49), ' A ', '']) {
      assert.deepEqual(check({ accountName }), ['accountName length'])
    }
    for (const mchOrderNo of ['', 'M'.repeat(31)])
      assert.deepEqual(check({ mchOrderNo }), ['mchOrderNo length'])
    for (const notifyUrl of ['', 'pay.example.in/x', 'ftp://pay.example.in', 'javascript:alert(1)']) {
      assert.deepEqual(check({ notifyUrl }), ['notifyUrl url'])
    }
    for (const notifyUrl of [
      'https://pay.example.in/x?',
      'https://pay.example.in/x?merchant=acme',
      'https://pay.example.in/x#acme',
    ])
      assert.deepEqual(check({ notifyUrl }), ['notifyUrl no-query'])
    assert.deepEqual(check({ currency: '' }), ['currency given'])
  }
  assert.deepEqual(payin({ returnUrl: 'shop' }), ['returnUrl url'])
  for (const accountNo of ['', '1234', '5'.repeat(36), '50100 123456', '٥٠١٠٠١٢٣'])
    assert.deepEqual(apply({ accountNo }), ['accountNo account-no'])
  for (const ifsc of ['', 'hdfc0001234', 'HDFC1001234', 'HDFC000123', 'HDFC00012345'])
    assert.deepEqual(apply({ ifsc }), ['ifsc ifsc'])
  for (const vpa of ['', 'asha', 'a@okaxis', 'asha@', 'asha@1ok', 'asha@ok.axis', 'asha@x'])
    assert.deepEqual(apply({ ifsc: null, vpa }), ['vpa vpa'])
  assert.deepEqual(apply({ vpa: 'asha@okaxis' }), ['ifsc one-of-two'])
  assert.deepEqual(apply({ ifsc: null }), ['ifsc one-of-two'])
})

test('a query names one of two numbers, and a recovery both of its own', () => {
  for (const [schema, other, rest] of [
    [querySchema, 'agentpayOrderId', {}],
    [payinQuerySchema, 'payOrderId', { executeNotify: false }],
  ] as const) {
    assert.deepEqual(broken(schema, { ...rest, mchOrderNo: 'M1' }), [])
    assert.deepEqual(broken(schema, { ...rest, [other]: 'X1' }), [])
    assert.match(broken(schema, rest).join(), /^\w+ one-of-two$/)
    assert.match(broken(schema, { ...rest, mchOrderNo: 'M1', [other]: 'X1' }).join(), /^\w+ one-of-two$/)
    assert.deepEqual(broken(schema, { ...rest, mchOrderNo: 'M'.repeat(31) }), ['mchOrderNo length'])
  }
  assert.deepEqual(broken(payinRecoverySchema, { payOrderId: 'PI1', utr: '432112345678' }), [])
  assert.deepEqual(broken(payinRecoverySchema, { payOrderId: '', utr: '4'.repeat(31) }), [
    'payOrderId length',
    'utr length',
  ])
})

test('words describe a wrong type, and it hides no other fault', () => {
  const order = { ...ORDER, mchOrderNo: 17, amount: 10_000, remark: undefined, vpa: 'asha@okaxis' }
  assert.deepEqual(
    faultsIn(applySchema, order).map(({ field, message }) => `${field} ${message}`),
    [
      'mchOrderNo must be text',
      'amount must be a bigint of paise',
      'remark must be text',
      'ifsc must be given, or vpa, and not both',
    ],
  )
  assert.deepEqual(
    faultsIn(payinQuerySchema, {}).map(({ field, message }) => `${field} ${message}`),
    ['executeNotify must be true or false', 'payOrderId must be given, or mchOrderNo, and not both'],
  )
  assert.deepEqual(faultsIn(applySchema, null)[0]?.message, 'must be an object')
})

test('returns all faults at once, also for values from an untyped program, and none repeats a value', () => {
  const wrong = {
    ...{ mchOrderNo: 17, amount: 10_000.5, currency: 'INR', phoneNumber: '12345', payerEmail: 'secret@' },
    ...{ accountName: 'Q', notifyUrl: 'nowhere-at-all', returnUrl: undefined, remark: null },
  }
  assert.deepEqual(broken(payinCreateSchema, wrong), [
    ...['mchOrderNo type', 'amount type', 'phoneNumber phone', 'payerEmail email', 'accountName length'],
    ...['notifyUrl url', 'returnUrl type'],
  ])
  const faults = JSON.stringify(faultsIn(payinCreateSchema, wrong))
  for (const value of ['17', '10000.5', '12345', 'secret', 'Q', 'nowhere'])
    assert.ok(!faults.includes(value), value)
})
