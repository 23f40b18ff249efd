import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyParams, bankDetails } from '../calls/apply.ts'
import { answered, ORDER } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { exchangeOf } from './exchange.ts'
import { readBody } from './verify-answer.ts'

const secrets = bankDetails(ORDER)
const params = applyParams(ORDER, '20001', 'given')
const exchange = (sent: SentRequest) => {
  const { text, fields } = readBody(sent)
  return exchangeOf(params, sent, text, fields, secrets)
}

test('keeps a request without bank details, and without a signature', () => {
  assert.deepEqual(exchange(answered('{"retCode":"SUCCESS","fee":300,"extra":null,"sign":"AB"}')), {
    tookMs: 3,
    httpStatus: 200,
    request: {
      ...{ mchId: '20001', mchOrderNo: ORDER.mchOrderNo, amount: '1234500', currency: 'INR' },
      ...{ phoneNumber: '••••3210', payerEmail: 'as••••@example.in', accountName: '••••' },
      ...{ accountNo: '••••6789', accountBankCode: 'BANK', extra: '••••1234', remark: 'November salary' },
      notifyUrl: ORDER.notifyUrl,
    },
    response: { retCode: 'SUCCESS', fee: '300', extra: null },
  })
})

test('masks a VPA wherever it travels', () => {
  const order = { ...ORDER, vpa: 'asha.menon@okaxis', ifsc: null }
  const sent = answered('{"retCode":"X","retMsg":"no such address ASHA.MENON@OKAXIS"}')
  const { text, fields } = readBody(sent)
  const kept = exchangeOf(applyParams(order, '20001', 'vpa'), sent, text, fields, bankDetails(order))
  assert.doesNotMatch(JSON.stringify(kept), /asha\.menon/i)
  assert.equal(kept.request?.accountNo, 'as••••@okaxis')
  assert.equal(kept.request?.extra, 'as••••@okaxis')
})

test('keeps an unreadable body scrubbed, and no more than 500 characters of it', () => {
  const { response, httpStatus } = exchange(
    answered(`<p>50100123456789 of Asha Menon${'.'.repeat(5_000)}`, 502),
  )
  const body = String(response?.body)
  assert.equal(httpStatus, 502)
  assert.equal(body.length, 500)
  assert.ok(body.startsWith('<p>•••• of ••••...'))
})

test('keeps the error code of a call without an answer, and no text of the error', () => {
  const { note, response } = exchange({ kind: 'not-sent', reason: 'dns', code: 'ENOTFOUND', tookMs: 1 })
  assert.equal(note, 'ENOTFOUND')
  assert.equal(response, undefined)
  const lost = exchange({
    kind: 'lost',
    reason: 'timeout',
    code: 'UND_ERR_BODY_TIMEOUT',
    httpStatus: 200,
    tookMs: 9,
  })
  assert.equal(lost.httpStatus, 200)
})

const detail = fc.constantFrom(...(['accountNo', 'accountName', 'phoneNumber', 'payerEmail'] as const))
const field = fc.constantFrom(
  ...[
    'retMsg',
    'errorMessage',
    'amount',
    'fee',
    'agentpayOrderId',
    'channelPayNo',
    'retCode',
    'busNo',
    'unheardOf',
  ],
  ...['accountNo', 'accountName', 'extra', 'phoneNumber', 'payerEmail', 'mchOrderNo', 'status', 'notifyUrl'],
)

test('keeps no bank detail that the gateway repeats, in any field, name or broken body', () => {
  fc.assert(
    fc.property(detail, field, fc.string(), fc.string(), (which, name, before, after) => {
      const value = ORDER[which] as string
      const text = `${before}${value}${after}`
      const bodies = [
        JSON.stringify({ [name]: text }),
        JSON.stringify({ [name]: { nested: text } }),
        JSON.stringify({ [name]: value }),
        JSON.stringify({ [text]: 'x' }),
        `broken ${text}`,
      ]
      for (const body of bodies) {
        for (const kept of Object.entries(exchange(answered(body)).response ?? {})) {
          assert.ok(!kept.some((part) => String(part).includes(value)), JSON.stringify(kept))
        }
      }
    }),
    { examples: [['accountNo', 'fee', '0', '']] },
  )
})

test('cuts a flood of fields and long values', () => {
  const flood = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`field${i}`, 'x'.repeat(100)]))
  const { response } = exchange(answered(JSON.stringify({ retCode: 'y'.repeat(5_000), ...flood })))
  assert.equal(Object.keys(response ?? {}).length, 40)
  assert.equal(String(response?.retCode).length, 500)
})
