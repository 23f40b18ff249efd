import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered, DIALECT, KEY, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import type { PayinQueryBy } from './payin-query.ts'
import { readPayinQueryAnswer } from './payin-query-answer.ts'

const PAID_AT = Date.UTC(2026, 10, 21, 12)
const paid = {
  ...{ retCode: 'SUCCESS', retMsg: null, mchOrderNo: 'C1', payOrderId: 'PI1', amount: 25_000, status: 2 },
  ...{ currency: 'INR', channelPayNo: '432112345678', productId: '8007', paySuccTime: PAID_AT },
  ...{ errorMessage: null, notifyStatus: 1, voucherMap: null },
}

function answer(sent: SentRequest, by: PayinQueryBy = { mchOrderNo: 'C1' }) {
  const answer = verifyAnswer(sent, readBody(sent).fields, KEY, DIALECT.sign, 'required')
  return readPayinQueryAnswer(answer, by, DIALECT.retCodes.payinQuery, {})
}
const report = (change: Record<string, string | number | null>) => {
  const result = answer(answered(signedJson({ ...paid, ...change })))
  return result.kind === 'known' ? result.report : null
}
const inShort = (...args: Parameters<typeof answer>) => {
  const result = answer(...args)
  return 'reason' in result ? `${result.kind} ${result.reason}` : result.kind
}

test('a signed report about the payin in the query is known, in paise and milliseconds', () => {
  assert.deepEqual(report({}), {
    ...{ mchOrderNo: 'C1', payOrderId: 'PI1', status: 'paid', amount: 25_000n, currency: 'INR' },
    ...{ utr: '432112345678', productId: '8007', voucherMap: null, paidAt: PAID_AT },
    ...{ errorMessage: null, notifyStatus: 1, exchange: {} },
  })
  assert.equal(inShort(answered(signedJson(paid)), { payOrderId: 'PI1' }), 'known')
})

test('numbers may come as texts, and missing fields are null', () => {
  const asTexts = report({
    amount: '25000',
    status: '2',
    notifyStatus: '1',
    paySuccTime: String(PAID_AT),
    productId: 8007,
  })
  assert.deepEqual(asTexts, report({}))
  const bare = answer(answered(signedJson({ retCode: 'SUCCESS', mchOrderNo: 'C1', status: 0 })))
  assert.deepEqual(bare.kind === 'known' && bare.report, {
    ...{ mchOrderNo: 'C1', payOrderId: null, status: 'pending', amount: null, currency: null, utr: null },
    ...{
      productId: null,
      voucherMap: null,
      paidAt: null,
      errorMessage: null,
      notifyStatus: null,
      exchange: {},
    },
  })
})

test('2 is paid, 3 is failed, 0 and 1 wait, and no other status decides anything', () => {
  assert.equal(report({ status: 3, errorMessage: 'expired' })?.status, 'failed')
  assert.equal(report({ status: 3, errorMessage: 'expired' })?.errorMessage, 'expired')
  for (const status of [0, 1]) assert.equal(report({ status })?.status, 'pending')
  for (const status of [4, -1, '02', '2.0', 'success']) {
    const { status: read, unlisted } = report({ status }) ?? {}
    assert.deepEqual([read, unlisted], ['unlisted', `status ${status}`])
  }
  for (const status of ['', null]) assert.equal(report({ status })?.unlisted, 'no status')
})

test('an amount or a time that breaks the contract’s format is null', () => {
  for (const amount of ['1e4', '25000.0', '-1', '', '025000', '25,000', null]) {
    assert.equal(report({ amount })?.amount, null)
  }
  assert.equal(report({ amount: '9007199254740993' })?.amount, 9_007_199_254_740_993n)
  for (const paySuccTime of [1_795_262_400, '2026-11-21 12:00:00', `${PAID_AT}.0`, '', 0, '9'.repeat(13)]) {
    assert.equal(report({ paySuccTime })?.paidAt, null)
  }
})

test('a voucher is kept as it came, and the signature covers it as it came', () => {
  const voucherMap = '{"bank":"XYZ","paid":250.10,"notes":[1, 2]}'
  const { sign } = JSON.parse(signedJson({ ...paid, voucherMap }))
  const body = JSON.stringify({ ...paid, sign }).replace('"voucherMap":null', `"voucherMap":${voucherMap}`)
  const result = answer(answered(body))
  assert.equal(result.kind === 'known' && result.report.voucherMap, voucherMap)
  assert.equal(inShort(answered(body.replace('250.10', '250.1'))), 'unknown bad-signature')
})

test('a report about another payin, or about none, says nothing', () => {
  assert.equal(inShort(answered(signedJson({ ...paid, mchOrderNo: 'C2' }))), 'unknown other-order')
  assert.equal(inShort(answered(signedJson({ ...paid, mchOrderNo: null }))), 'unknown no-order-id')
  assert.equal(inShort(answered(signedJson(paid)), { payOrderId: 'PI2' }), 'unknown other-order')
})

test('only well-signed codes that the dialect lists are not found and retry; everything else is unknown', () => {
  assert.equal(inShort(answered(signedJson({ retCode: 'ORDER_NOT_FOUND' }))), 'not-found')
  assert.equal(inShort(answered('{"retCode":"ORDER_NOT_FOUND"}')), 'unknown unsigned')
  assert.equal(inShort(answered(signedJson({ retCode: 'TOO_FAST' }))), 'retry')
  assert.equal(inShort(answered(signedJson({ retCode: 'SIGN_ERROR' }))), 'unknown unlisted-code')
  assert.equal(inShort({ kind: 'not-sent', reason: 'dns', code: 'X', tookMs: 1 }), 'unknown not-sent')
})

test('an unreadable UTR or payment time is null, and the report names it with its value', () => {
  const odd = report({ channelPayNo: 'N123#45', paySuccTime: '2026-11-21 12:00:00' })
  assert.deepEqual([odd?.utr, odd?.paidAt], [null, null])
  assert.deepEqual(odd?.unreadable, ['channelPayNo "N123#45"', 'paySuccTime "2026-11-21 12:00:00"'])
})
