import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered, DIALECT, KEY, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import { readBalanceAnswer } from './balance-answer.ts'

const balance = {
  ...{ retCode: 'SUCCESS', retMsg: null, busNo: 'B1', amount: 900, frozenAmount: 0, availableAmount: 800 },
  ...{ pendingAmount: 100, unsettledAmount: 0 },
}

const answer = (sent: SentRequest) =>
  readBalanceAnswer(verifyAnswer(sent, readBody(sent).fields, KEY, DIALECT.sign, 'optional'), {})
const inShort = (sent: SentRequest) => {
  const result = answer(sent)
  return 'reason' in result ? `${result.kind} ${result.reason}` : result.kind
}

test('a balance needs no signature, because the contract shows none', () => {
  assert.deepEqual(answer(answered(JSON.stringify(balance))), {
    ...{ kind: 'balance', busNo: 'B1', amount: 900n, frozenAmount: 0n, availableAmount: 800n },
    ...{ pendingAmount: 100n, unsettledAmount: 0n },
  })
})

test('a signature that is present must be valid', () => {
  assert.equal(inShort(answered(signedJson(balance))), 'balance')
  assert.equal(inShort(answered(signedJson(balance, DIALECT, 'another key'))), 'unknown bad-signature')
})

test('a balance whose available amount is unreadable covers nothing; the other amounts may be missing', () => {
  for (const wrong of [null, '', '1e4', '10.5', '-0', '--1', undefined]) {
    assert.equal(
      inShort(answered(JSON.stringify({ ...balance, availableAmount: wrong }))),
      'unknown unparsable',
    )
    for (const name of ['amount', 'frozenAmount', 'pendingAmount', 'unsettledAmount']) {
      const read = answer(answered(JSON.stringify({ ...balance, [name]: wrong })))
      assert.deepEqual('availableAmount' in read && [read.availableAmount, { ...read }[name as 'amount']], [
        800n,
        null,
      ])
    }
  }
})

test('each amount may be below zero', () => {
  const read = answer(answered(JSON.stringify({ ...balance, unsettledAmount: -100, availableAmount: '-5' })))
  assert.deepEqual('availableAmount' in read && [read.availableAmount, read.unsettledAmount], [-5n, -100n])
})

test('a failure, another status or no answer is no balance', () => {
  assert.equal(inShort(answered('{"retCode":"SYSTEM_ERROR"}')), 'unknown unlisted-code')
  assert.equal(inShort(answered(JSON.stringify(balance), 500)), 'unknown http-status')
  assert.equal(inShort({ kind: 'not-sent', reason: 'dns', code: 'ENOTFOUND', tookMs: 1 }), 'unknown not-sent')
})
