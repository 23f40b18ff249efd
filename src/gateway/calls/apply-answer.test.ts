import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Dialect } from '../dialect/dialect.ts'
import { loadDialect } from '../dialect/dialect-file.ts'
import { answered, DIALECT, KEY, ORDER, signedJson } from '../testing.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readBody, verifyAnswer } from '../wire/verify-answer.ts'
import { bankDetails } from './apply.ts'
import { readApplyAnswer } from './apply-answer.ts'

/** The short form of one result: its kind and its explanation. */
function answer(sent: SentRequest, dialect: Dialect = DIALECT) {
  const answer = verifyAnswer(sent, readBody(sent).fields, KEY, dialect.sign, 'required')
  return readApplyAnswer(answer, dialect.retCodes.apply, bankDetails(ORDER), {})
}
const inShort = (sent: SentRequest, dialect?: Dialect) => {
  const result = answer(sent, dialect)
  return 'reason' in result ? `${result.kind} ${result.reason}` : result.kind
}

const success = {
  ...{
    retCode: 'SUCCESS',
    retMsg: null,
    agentpayOrderId: 'AP202611210000000001',
    fee: 300,
    extra: null,
    status: 1,
  },
}
const lost = (reason: 'timeout' | 'connection-lost' | 'unparsable'): SentRequest => ({
  ...{ kind: 'lost', reason, code: 'X', httpStatus: null, tookMs: 1 },
})
const notSent: SentRequest = {
  kind: 'not-sent',
  reason: 'connection-refused',
  code: 'ECONNREFUSED',
  tookMs: 1,
}

test('a signed SUCCESS with an order id is accepted, with fee and status', () => {
  const { kind, ...rest } = answer(answered(signedJson(success)))
  assert.equal(kind, 'accepted')
  assert.deepEqual(rest, {
    ...{ agentpayOrderId: 'AP202611210000000001', fee: 300n, status: 'processing', exchange: {} },
  })
})

test('an order id may be a number, and keeps every digit', () => {
  const sign = /"sign":"(\w+)"/.exec(
    signedJson({ retCode: 'SUCCESS', agentpayOrderId: '90071992547409931234' }),
  )?.[1]
  const result = answer(
    answered(`{"retCode":"SUCCESS","agentpayOrderId":90071992547409931234,"sign":"${sign}"}`),
  )
  assert.equal(result.kind === 'accepted' && result.agentpayOrderId, '90071992547409931234')
})

test('only a request that was never handed over counts as not sent', () => {
  assert.equal(inShort(notSent), 'not-sent connection-refused')
  assert.equal(inShort(lost('timeout')), 'unknown timeout')
  assert.equal(inShort(lost('connection-lost')), 'unknown connection-lost')
  assert.equal(inShort(lost('unparsable')), 'unknown unparsable')
})

test('any HTTP status but 200 is unknown, even with a signed SUCCESS or a signed refusal', () => {
  for (const status of [201, 204, 301, 302, 307, 400, 401, 404, 409, 429, 500, 502, 503]) {
    assert.equal(inShort(answered(signedJson(success), status)), 'unknown http-status')
    assert.equal(inShort(answered(signedJson({ retCode: 'REFUSED' }), status)), 'unknown http-status')
  }
})

test('an unreadable body, or one without a retCode, is unknown', () => {
  const texts = ['', 'OK', '<html>502</html>', '[]', '{"retCode":"SUCCESS"', signedJson({ status: 3 })]
  for (const text of texts) assert.equal(inShort(answered(text)), 'unknown unparsable', text)
  assert.equal(inShort(answered(signedJson({ retCode: null }))), 'unknown unparsable')
  assert.equal(inShort(answered(signedJson({ retCode: '' }))), 'unknown unparsable')
  const notUtf8 = Buffer.concat([Buffer.from('{"retCode":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  assert.equal(inShort(answered(notUtf8)), 'unknown unparsable')
})

test('an answer without a signature, or with a wrong one, is not trusted', () => {
  for (const retCode of ['SUCCESS', 'REFUSED', 'TOO_FAST', 'DUPLICATE_ORDER']) {
    const fields = { ...success, retCode }
    assert.equal(inShort(answered(JSON.stringify(fields))), 'unknown unsigned')
    assert.equal(inShort(answered(JSON.stringify({ ...fields, sign: null }))), 'unknown unsigned')
    assert.equal(inShort(answered(JSON.stringify({ ...fields, sign: '' }))), 'unknown unsigned')
    assert.equal(inShort(answered(signedJson(fields, DIALECT, 'another key'))), 'unknown bad-signature')
    const tampered = signedJson(fields).replace('"fee":300', '"fee":301')
    assert.equal(inShort(answered(tampered)), 'unknown bad-signature')
  }
})

test('a number rewritten on its way no longer matches the signature', () => {
  const text = signedJson({ ...success, fee: 100 })
  assert.equal(inShort(answered(text)), 'accepted')
  assert.equal(inShort(answered(text.replace('"fee":100', '"fee":1e2'))), 'unknown bad-signature')
  assert.equal(inShort(answered(text.replace('"fee":100', '"fee":100.0'))), 'unknown bad-signature')
})

test('the signature covers unknown fields too', () => {
  const text = signedJson({ ...success, zone: 'south' })
  assert.equal(inShort(answered(text)), 'accepted')
  assert.equal(inShort(answered(text.replace('south', 'north'))), 'unknown bad-signature')
})

test('a SUCCESS that names no order is unknown', () => {
  for (const agentpayOrderId of [null, '', ' ', 'null', 'NULL', 'undefined', 0, '-', '<none>']) {
    assert.equal(inShort(answered(signedJson({ ...success, agentpayOrderId }))), 'unknown no-order-id')
  }
  assert.equal(inShort(answered(signedJson({ retCode: 'SUCCESS' }))), 'unknown no-order-id')
})

test('a fee that is not a whole number of paise is null', () => {
  for (const fee of ['1e4', '10000.0', '-1', '', '0x10', ' 5', null]) {
    const result = answer(answered(signedJson({ ...success, fee })))
    assert.equal(result.kind === 'accepted' && result.fee, null)
  }
})

test('a signed code means what its list says', () => {
  const says = (retCode: string) => {
    const sent = answered(signedJson({ retCode, retMsg: 'try 50100123456789 later' }))
    const { exchange, ...rest } = answer(sent)
    return rest
  }
  const message = 'try •••• later'
  assert.deepEqual(says('REFUSED'), { kind: 'refused', code: 'REFUSED', message })
  const later = { kind: 'retry-later', message }
  assert.deepEqual(says('TOO_FAST'), { ...later, code: 'TOO_FAST', balanceShort: false })
  assert.deepEqual(says('BALANCE_SHORT'), { ...later, code: 'BALANCE_SHORT', balanceShort: true })
  assert.deepEqual(says('DUPLICATE_ORDER'), { kind: 'duplicate', code: 'DUPLICATE_ORDER' })
})

test('the message of a refusal may stand in either field, or in none', () => {
  const message = (fields: Record<string, string | null>) => {
    const result = answer(answered(signedJson({ retCode: 'REFUSED', ...fields })))
    return result.kind === 'refused' ? result.message : assert.fail(result.kind)
  }
  assert.equal(message({ retMsg: null, errorMessage: 'no such branch' }), 'no such branch')
  assert.equal(message({ retMsg: 'closed', errorMessage: 'no such branch' }), 'closed')
  assert.equal(message({}), '')
})

test('the signature covers empty fields if the dialect says so for answers', () => {
  const dialect = loadDialect('default', {
    sign: { emptyFields: { requests: false, answers: true, callbacks: false } },
  })
  assert.equal(inShort(answered(signedJson({ ...success, extra: '' }, dialect)), dialect), 'accepted')
  assert.equal(inShort(answered(signedJson({ ...success, extra: '' }, dialect))), 'unknown bad-signature')
})

test('a body that is not UTF-8 is kept byte by byte, and a missing body is null', () => {
  assert.deepEqual(readBody(answered(Buffer.from([0x61, 0xff]))), { text: 'aÿ', fields: null })
  assert.deepEqual(readBody(lost('timeout')), { text: null, fields: null })
})

test('a code in no list is unknown, and so is one from the query lists or in another case', () => {
  for (const retCode of [
    'SYSTEM_ERROR',
    'ORDER_NOT_FOUND',
    'refused',
    'Success',
    'SUCCESS ',
    '0',
    'constructor',
  ]) {
    assert.equal(inShort(answered(signedJson({ retCode }))), 'unknown unlisted-code', retCode)
  }
})

test('a status other than 1 is reported but moves nothing by itself, and one outside the contract is unlisted', () => {
  const statuses = {
    0: 'pending',
    1: 'processing',
    2: 'success',
    3: 'failed',
    4: 'unlisted',
    '02': 'unlisted',
  }
  for (const [status, word] of Object.entries(statuses)) {
    const result = answer(answered(signedJson({ ...success, status })))
    assert.equal(result.kind === 'accepted' && result.status, word)
  }
})

test('if failures carry no signature an unsigned one counts, a badly signed one does not, and SUCCESS still needs one', () => {
  const dialect = loadDialect('default', {
    sign: { failures: false },
    retCodes: { apply: { refused: ['REFUSED'] } },
  })
  assert.equal(inShort(answered('{"retCode":"REFUSED"}'), dialect), 'refused')
  assert.equal(inShort(answered('{"retCode":"REFUSED","sign":"0"}'), dialect), 'unknown bad-signature')
  assert.equal(inShort(answered('{"retCode":"OTHER"}'), dialect), 'unknown unlisted-code')
  assert.equal(inShort(answered(JSON.stringify(success)), dialect), 'unknown unsigned')
})
