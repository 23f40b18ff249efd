import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Dialect } from '../dialect/dialect.ts'
import { loadDialect } from '../dialect/dialect-file.ts'
import { answered, DIALECT, KEY, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import type { QueryBy } from './query.ts'
import { readQueryAnswer } from './query-answer.ts'

const found = {
  ...{ retCode: 'SUCCESS', mchOrderNo: 'P1', agentpayOrderId: 'AP1', channelPayNo: '432112345678' },
  ...{ amount: 10_000, status: 2, fee: 300, errorMessage: null, notifyStatus: 0 },
}

function answer(sent: SentRequest, by: QueryBy = { mchOrderNo: 'P1' }, dialect: Dialect = DIALECT) {
  const answer = verifyAnswer(sent, readBody(sent).fields, KEY, dialect.sign, 'required')
  return readQueryAnswer(answer, by, dialect.retCodes.query, {})
}
const inShort = (...args: Parameters<typeof answer>) => {
  const result = answer(...args)
  return 'reason' in result ? `${result.kind} ${result.reason}` : result.kind
}

test('a signed report about the order in the query is found, with its amounts in paise', () => {
  assert.deepEqual(answer(answered(signedJson(found))), {
    kind: 'found',
    report: {
      ...{ mchOrderNo: 'P1', agentpayOrderId: 'AP1', status: 'success', amount: 10_000n, fee: 300n },
      ...{ utr: '432112345678', errorMessage: null, exchange: {} },
    },
  })
  assert.equal(inShort(answered(signedJson(found)), { agentpayOrderId: 'AP1' }), 'found')
})

test('a report about another order, or about none, says nothing', () => {
  const other = 'unknown other-order'
  assert.equal(inShort(answered(signedJson({ ...found, mchOrderNo: 'P2' }))), other)
  assert.equal(inShort(answered(signedJson({ ...found, mchOrderNo: 'p1' }))), other)
  const none = 'unknown no-order-id'
  assert.equal(inShort(answered(signedJson({ ...found, mchOrderNo: null }))), none)
  assert.equal(inShort(answered(signedJson(found)), { agentpayOrderId: 'AP2' }), other)
  const withoutId = answered(signedJson({ ...found, agentpayOrderId: null }))
  assert.equal(inShort(withoutId, { agentpayOrderId: 'AP1' }), none)
})

test('a status outside the contract is unlisted, and an amount that is not a whole number is null', () => {
  const report = (change: Record<string, string | number | null>) => {
    const result = answer(answered(signedJson({ ...found, ...change })))
    return result.kind === 'found' ? result.report : null
  }
  for (const status of [4, -1, '2.0', '02', 'success', '', null])
    assert.equal(report({ status })?.status, 'unlisted')
  for (const amount of ['1e4', '10000.0', '-1', '', '+5', '010000', '10,000', '9'.repeat(19), null]) {
    assert.equal(report({ amount })?.amount, null)
  }
  assert.equal(report({ amount: '10000' })?.amount, 10_000n)
})

test('an unreadable UTR, fee or order number is null, and the report names it with its value', () => {
  const report = (change: Record<string, string | number | null>) => {
    const result = answer(answered(signedJson({ ...found, ...change })))
    return result.kind === 'found' ? result.report : assert.fail(result.kind)
  }
  const odd = report({ channelPayNo: 'UTIB 0000 1234', fee: '5.00', agentpayOrderId: 'AP#1' })
  assert.deepEqual([odd.utr, odd.fee, odd.agentpayOrderId], [null, null, null])
  const named = ['agentpayOrderId "AP#1"', 'channelPayNo "UTIB 0000 1234"', 'fee "5.00"']
  assert.deepEqual(odd.unreadable, named)
  assert.equal(report({ channelPayNo: null, fee: '', agentpayOrderId: 'null' }).unreadable, undefined)
  const leaking = report({ channelPayNo: `to 50100123456789 ${'x'.repeat(99)}` }).unreadable?.join()
  assert.ok(leaking && leaking.length < 90 && !leaking.includes('50100123456789'))
})

test('the words that senders write for "none" are no UTR and no order number, so the true one can come later', () => {
  const words = ['None', 'NULL', 'nil', 'N/A', 'na', 'False', 'undefined', '-', '--', '0', '000000000000']
  for (const nothing of words) {
    const result = answer(answered(signedJson({ ...found, channelPayNo: nothing, agentpayOrderId: nothing })))
    const report = result.kind === 'found' ? result.report : assert.fail(result.kind)
    assert.deepEqual(
      [report.utr, report.agentpayOrderId, report.unreadable],
      [null, null, undefined],
      nothing,
    )
  }
})

test('an error message is kept without possible account numbers', () => {
  const result = answer(
    answered(signedJson({ ...found, status: 3, errorMessage: 'Account 50100123456789 is closed' })),
  )
  assert.equal(result.kind === 'found' && result.report.errorMessage, 'Account ••••6789 is closed')
})

test('not found counts only if it is well signed, or if failures carry no signature', () => {
  assert.equal(inShort(answered(signedJson({ retCode: 'ORDER_NOT_FOUND' }))), 'not-found')
  assert.equal(inShort(answered('{"retCode":"ORDER_NOT_FOUND"}')), 'unknown unsigned')
  assert.equal(
    inShort(answered(signedJson({ retCode: 'ORDER_NOT_FOUND' }, DIALECT, 'other'))),
    'unknown bad-signature',
  )
  assert.equal(inShort(answered(signedJson({ retCode: 'ORDER_NOT_FOUND' }), 404)), 'unknown http-status')
  const lax = loadDialect('default', {
    ...{ sign: { failures: false }, retCodes: { query: { notFound: ['ORDER_NOT_FOUND'] } } },
  })
  assert.equal(inShort(answered('{"retCode":"ORDER_NOT_FOUND"}'), { mchOrderNo: 'P1' }, lax), 'not-found')
})

test('everything else leaves the payout unchanged', () => {
  assert.equal(inShort(answered(signedJson({ retCode: 'TOO_FAST' }))), 'unknown retry-later')
  assert.equal(inShort(answered(signedJson({ retCode: 'DUPLICATE_ORDER' }))), 'unknown unlisted-code')
  assert.equal(inShort(answered('not JSON')), 'unknown unparsable')
  const notSent: SentRequest = { kind: 'not-sent', reason: 'dns', code: 'ENOTFOUND', tookMs: 1 }
  assert.equal(inShort(notSent), 'unknown not-sent')
  const lost: SentRequest = { kind: 'lost', reason: 'timeout', code: 'X', httpStatus: null, tookMs: 1 }
  assert.equal(inShort(lost), 'unknown timeout')
})
