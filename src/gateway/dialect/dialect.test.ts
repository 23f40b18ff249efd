import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { longestSendMs, queryPolicyOf } from './dialect.ts'
import { loadDialect } from './dialect-file.ts'

test('the default dialect relies on nothing that the contract does not promise', () => {
  const dialect = loadDialect('default')
  assert.equal(dialect.duplicateApply, 'unknown')
  assert.equal(queryPolicyOf(dialect).duplicatesRefused, false)
  assert.equal(queryPolicyOf(dialect).graceMs, 600_000)
  assert.equal(dialect.sign.failures, true)
  const tables = Object.values(dialect.retCodes)
  assert.deepEqual(
    tables.flatMap((table) => Object.values(table).flat()),
    [],
  )
})

test('the default paths are those of the contract, and its alternatives can be set', () => {
  assert.deepEqual(loadDialect('default').paths, {
    ...{ apply: '/api/agentpay/apply', payoutQuery: '/api/pay/orderquery' },
    ...{ balance: '/api/agentpay/query_balance', payinCreate: '/api/pay/neworder' },
    ...{ payinQuery: '/api/pay/orderquery', payinRecovery: '/api/pay/replace' },
  })
  const paths = { payoutQuery: '/api/pay/query_order', balance: '/api/agentpay/query_order' }
  assert.deepEqual(loadDialect('default', { paths }).paths, { ...loadDialect('default').paths, ...paths })
})

test('the sandbox refuses duplicates, so absence may be confirmed sooner and the order sent again', () => {
  const dialect = loadDialect('sandbox')
  assert.deepEqual(queryPolicyOf(dialect), {
    queryAfterMs: [3_000, 5_000, 10_000, 20_000, 30_000],
    graceMs: 5_000,
    confirmations: 2,
    notPaidCodes: [
      ...['TOO_FAST', 'BALANCE_SHORT', 'PARAM_ERROR', 'AMOUNT_INVALID', 'ACCOUNT_NO_INVALID', 'IFSC_INVALID'],
      ...[
        'VPA_INVALID',
        'BANK_CODE_INVALID',
        'PHONE_INVALID',
        'EMAIL_INVALID',
        'NAME_INVALID',
        'NOTIFY_URL_INVALID',
      ],
      ...['CURRENCY_INVALID', 'ORDER_NO_INVALID', 'EXTRA_INVALID'],
    ],
    duplicatesRefused: true,
  })
  assert.equal(dialect.leaseMs, 15_000)
  assert.deepEqual(dialect.sign, loadDialect('default').sign)
})

test('a send ends before the lease does, in every built-in dialect', () => {
  for (const name of ['default', 'sandbox']) {
    const dialect = loadDialect(name)
    assert.ok(longestSendMs(dialect.sendTimeoutMs) < dialect.leaseMs, name)
  }
})

test('a merchant overrides single settings and keeps the rest; a list replaces the list', () => {
  const dialect = loadDialect('sandbox', {
    sign: { hexCase: 'lower' },
    retCodes: { query: { notFound: ['NO_SUCH_ORDER'] } },
  })
  assert.equal(dialect.sign.hexCase, 'lower')
  assert.equal(dialect.sign.algorithm, 'md5')
  assert.deepEqual(dialect.retCodes.query.notFound, ['NO_SUCH_ORDER'])
  assert.deepEqual(dialect.retCodes.apply, loadDialect('sandbox').retCodes.apply)
})

test("an operator's own file extends a built-in dialect, or another file beside it", (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'dialect-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'base.json'), '{"extends":"sandbox","body":"json"}')
  writeFileSync(join(folder, 'mine.json'), '{"extends":"./base.json","vpaAccountNo":"vpa"}')
  writeFileSync(join(folder, 'loop.json'), '{"extends":"loop.json"}')
  const dialect = loadDialect(join(folder, 'mine.json'))
  assert.equal(dialect.body, 'json')
  assert.equal(dialect.vpaAccountNo, 'vpa')
  assert.equal(dialect.duplicateApply, 'refused')
  assert.throws(() => loadDialect(join(folder, 'loop.json')), /extends itself/)
})

test('an error names every wrong setting at once, misspelt ones too', () => {
  const wrong = {
    body: 'xml',
    sign: { algorithm: 'sha1', hexcase: 'lower' },
    leaseMs: 0,
    reqTimeZone: 'Asia/Nowhere',
    paths: { apply: '/apply?x=1' },
  }
  assert.throws(() => loadDialect('default', wrong), {
    name: 'DialectError',
    message:
      'dialect default: body must be one of form, json, query; sign.algorithm must be one of md5, hmac-sha256; ' +
      'sign.hexcase is unknown; paths.apply must be a path that begins with "/", without a query string; ' +
      'leaseMs must be a whole number of milliseconds, at least 1; ' +
      'reqTimeZone must be an IANA time zone such as Asia/Kolkata',
  })
})

test('settings that contradict each other are refused', () => {
  const refuses = (overrides: Record<string, unknown>, expected: RegExp) =>
    assert.throws(() => loadDialect('default', overrides), expected)
  const apply = (lists: Record<string, string[]>) => ({ retCodes: { apply: lists } })
  refuses(
    apply({ refused: ['NO'], duplicate: ['NO'] }),
    /retCodes\.apply must have each code in one list only/,
  )
  refuses(apply({ refused: ['SUCCESS'] }), /SUCCESS in none/)
  refuses(apply({ balanceShort: ['POOR'] }), /retCodes\.apply\.balanceShort must .*retryLater/)
  refuses({ retCodes: { query: { notFound: ['A'], retry: ['A'] } } }, /retCodes\.query/)
  const payin = (operation: string, lists: Record<string, string[]>) => ({ retCodes: { [operation]: lists } })
  refuses(
    payin('payinCreate', { refused: ['NO'], duplicate: ['NO'] }),
    /retCodes\.payinCreate must have each code/,
  )
  refuses(payin('payinQuery', { notFound: ['SUCCESS'] }), /retCodes\.payinQuery must .*SUCCESS in none/)
  refuses(payin('payinRecovery', { refused: ['A'], retryLater: ['A'] }), /retCodes\.payinRecovery must/)
  refuses({ queryAfterMs: [10, 5] }, /queryAfterMs must not have a wait that is shorter/)
  refuses({ leaseMs: 50_000 }, /leaseMs must be more than a send can take/)
  refuses({ absence: { graceMs: 60_000 } }, /absence\.graceMs must be more than leaseMs/)
})
