import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered, DIALECT, KEY, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import { readPayinRecoverAnswer } from './payin-recovery-answer.ts'

const submitted = {
  retCode: 'SUCCESS',
  retMsg: null,
  mchOrderNo: 'C1',
  agentpayOrderId: 'PI1',
  errorMessage: null,
  extra: null,
}

function answer(sent: SentRequest) {
  const answer = verifyAnswer(sent, readBody(sent).fields, KEY, DIALECT.sign, 'required')
  return readPayinRecoverAnswer(answer, 'PI1', DIALECT.retCodes.payinRecovery, {})
}
const inShort = (sent: SentRequest) => {
  const result = answer(sent)
  if ('reason' in result) return `${result.kind} ${result.reason}`
  return 'code' in result ? `${result.kind} ${result.code} ${result.message}` : result.kind
}

test('a submitted recovery names the order, and proves no payment', () => {
  const expected = { kind: 'submitted', mchOrderNo: 'C1', errorMessage: null, exchange: {} }
  assert.deepEqual(answer(answered(signedJson(submitted))), expected)
  assert.deepEqual(answer(answered(signedJson({ ...submitted, agentpayOrderId: null }))), expected)
})

test('an answer about another order says nothing', () => {
  assert.equal(inShort(answered(signedJson({ ...submitted, agentpayOrderId: 'PI2' }))), 'unknown other-order')
})

test('a refusal means what the dialect says, and an unlisted code is unknown', () => {
  const refused = (retCode: string) =>
    inShort(answered(signedJson({ retCode, retMsg: 'UTR 432112345678 is used' })))
  assert.equal(refused('UTR_USED'), 'refused UTR_USED UTR ••••5678 is used')
  assert.equal(refused('UTR_NOT_FOUND'), 'not-found UTR_NOT_FOUND UTR ••••5678 is used')
  assert.equal(refused('TOO_FAST'), 'retry-later TOO_FAST UTR ••••5678 is used')
  assert.equal(refused('DUPLICATE_ORDER'), 'unknown unlisted-code')
})

test('a recovery without a trustworthy answer is unknown', () => {
  assert.equal(inShort(answered(JSON.stringify(submitted))), 'unknown unsigned')
  assert.equal(inShort(answered(signedJson(submitted), 500)), 'unknown http-status')
  assert.equal(inShort({ kind: 'not-sent', reason: 'tls', code: 'X', tookMs: 1 }), 'unknown not-sent')
})
