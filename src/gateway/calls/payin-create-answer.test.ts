import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered, DIALECT, KEY, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import { readPayinCreateAnswer } from './payin-create-answer.ts'

const PARAMS =
  '{"payMethod":"urlJump","payUrl":"https://pay.example/c/1","qrString":"upi://pay?pa=x@y&am=250.00","url":null,"upi":"x@y"}'
/** As a server writes it: it signs the object as its own text. */
const created = (payParams = PARAMS) => {
  const signed = JSON.parse(signedJson({ retCode: 'SUCCESS', payOrderId: 'PI1', payParams, retMsg: null }))
  return `{"retCode":"SUCCESS","payOrderId":"PI1","payParams":${payParams},"retMsg":null,"sign":"${signed.sign}"}`
}

function answer(sent: SentRequest, secrets: string[] = []) {
  const answer = verifyAnswer(sent, readBody(sent).fields, KEY, DIALECT.sign, 'required')
  return readPayinCreateAnswer(answer, DIALECT.retCodes.payinCreate, secrets, {})
}
const inShort = (sent: SentRequest) => {
  const result = answer(sent)
  if ('reason' in result) return `${result.kind} ${result.reason}`
  return 'code' in result ? `${result.kind} ${result.code}` : result.kind
}

test('a created payin has its number, and the payer’s parameters as they came', () => {
  assert.deepEqual(answer(answered(created())), {
    kind: 'accepted',
    payOrderId: 'PI1',
    payParams: {
      ...{ payMethod: 'urlJump', payUrl: 'https://pay.example/c/1', url: null, upi: 'x@y' },
      qrString: 'upi://pay?pa=x@y&am=250.00',
    },
    exchange: {},
  })
})

test('the signature covers the parameters as they stand: one changed character in them is caught', () => {
  assert.equal(inShort(answered(created().replace('x@y&am=250', 'x@z&am=250'))), 'unknown bad-signature')
  assert.equal(inShort(answered(created().replace('"url":null', '"url": null'))), 'unknown bad-signature')
})

test('unreadable parameters, or parameters in a text, do not make the order unknown', () => {
  const params = (sent: SentRequest) => {
    const result = answer(sent)
    return result.kind === 'accepted' ? result.payParams.payUrl : result.kind
  }
  assert.equal(params(answered(created('[]'))), null)
  assert.equal(params(answered(signedJson({ retCode: 'SUCCESS', payOrderId: 'PI1' }))), null)
  assert.equal(
    params(answered(signedJson({ retCode: 'SUCCESS', payOrderId: 'PI1', payParams: PARAMS }))),
    'https://pay.example/c/1',
  )
})

test('a success without a number is unknown: there is an order, and nobody can name it', () => {
  assert.equal(inShort(answered(signedJson({ retCode: 'SUCCESS', payOrderId: null }))), 'unknown no-order-id')
})

test('a refusal means what the dialect says, and an unlisted code is unknown', () => {
  const refused = (retCode: string) => inShort(answered(signedJson({ retCode, retMsg: 'no' })))
  assert.equal(refused('AMOUNT_INVALID'), 'refused AMOUNT_INVALID')
  assert.equal(refused('TOO_FAST'), 'retry-later TOO_FAST')
  assert.equal(refused('DUPLICATE_ORDER'), 'duplicate DUPLICATE_ORDER')
  assert.equal(refused('UTR_USED'), 'unknown unlisted-code')
  assert.equal(inShort(answered('{"retCode":"AMOUNT_INVALID"}')), 'unknown unsigned')
})

test('a message reveals nothing about the payer', () => {
  const retMsg = 'Dev Nair, 9876501234: amount too small'
  const result = answer(answered(signedJson({ retCode: 'AMOUNT_INVALID', retMsg })), [
    'Dev Nair',
    '9876501234',
  ])
  assert.equal(result.kind === 'refused' && result.message, '••••, ••••: amount too small')
})

test('only a request that never left is not sent', () => {
  assert.equal(inShort({ kind: 'not-sent', reason: 'dns', code: 'X', tookMs: 1 }), 'not-sent dns')
  const lost: SentRequest = { kind: 'lost', reason: 'timeout', code: 'X', httpStatus: null, tookMs: 1 }
  assert.equal(inShort(lost), 'unknown timeout')
  assert.equal(inShort(answered(created(), 502)), 'unknown http-status')
})
