import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { loadDialect } from '../../src/gateway/dialect/dialect-file.ts'
import { signature } from '../../src/gateway/wire/sign.ts'
import { type Sandbox, startSandbox } from './sandbox.ts'
import { KEY, MCH_ID, newStateFile, payin, payout } from './testing.ts'

const APPLY = '/api/agentpay/apply'
const CREATE = '/api/pay/neworder'
const FORM = 'application/x-www-form-urlencoded'

type Wrong = { path?: string; query?: string; type?: string; body: string | Uint8Array }
type Refusal = readonly [httpStatus: number, retCode: string]

const { sign: rules } = loadDialect('default')

/** Signed by the client's own code, so that the sandbox does not check itself. */
const encoded = (params: Record<string, string>): string => {
  const entries = Object.entries(params)
  const sign = signature(new Map(entries), KEY, rules, 'requests')
  return new URLSearchParams([...entries, ['sign', sign]]).toString()
}
const good = encoded(payout())
/** Signed well over its content, so that only the rules can refuse it. */
const applied = (over: Record<string, string>): Wrong => ({ body: encoded(payout(over)) })
const created = (over: Record<string, string>): Wrong => ({ path: CREATE, body: encoded(payin(over)) })
/** In an object literal, `__proto__` is not a name. */
const named = (name: string, value: string) => Object.fromEntries([[name, value]])
/** A well-signed apply without an amount, except for what `over` tries to smuggle in. */
function withoutAmount(over: Record<string, string>): Wrong {
  const { amount: _, ...rest } = payout()
  return { body: encoded(Object.assign(Object.create(null), rest, over)) }
}

const WRONG: readonly (readonly [what: string, wrong: Wrong, refusal: Refusal])[] = [
  ['a body over the limit', { body: `${good}&remark=${'x'.repeat(70_000)}` }, [413, 'PARAM_ERROR']],
  ['a form that calls itself JSON', { type: 'application/json', body: good }, [400, 'PARAM_ERROR']],
  ['a form that calls itself text', { type: 'text/plain', body: good }, [415, 'PARAM_ERROR']],
  ['a multipart body', { type: 'multipart/form-data; boundary=x', body: good }, [415, 'PARAM_ERROR']],
  ['an empty body', { body: '' }, [200, 'PARAM_ERROR']],
  ['a repeated parameter', { body: `${good}&amount=10000` }, [200, 'PARAM_ERROR']],
  ['a repeated signature', { body: `${good}&sign=x` }, [200, 'PARAM_ERROR']],
  ['a parameter in body and query', { query: '?amount=999900', body: good }, [400, 'PARAM_ERROR']],
  ['all parameters in the query', { query: `?${good}`, body: '' }, [415, 'PARAM_ERROR']],
  ['a percent sign that begins no byte', { body: `${good}&remark=%zz` }, [400, 'PARAM_ERROR']],
  ['a percent sign at the end', { body: `${good}&remark=%` }, [400, 'PARAM_ERROR']],
  ['percent-encoded bytes that are no UTF-8', { body: `${good}&remark=%ff%fe` }, [400, 'PARAM_ERROR']],
  ['an overlong form of a slash', { body: `${good}&remark=%c0%af` }, [400, 'PARAM_ERROR']],
  [
    'bytes that are no UTF-8',
    { body: Buffer.concat([Buffer.from(`${good}&remark=`), Buffer.from([0xff])]) },
    [400, 'PARAM_ERROR'],
  ],
  ['an amount in __proto__', withoutAmount(named('__proto__[amount]', '10000')), [200, 'AMOUNT_INVALID']],
  ['an amount under __proto__', withoutAmount(named('__proto__', '10000')), [200, 'AMOUNT_INVALID']],
  ['an amount under constructor', withoutAmount(named('constructor', '10000')), [200, 'AMOUNT_INVALID']],
  ['an amount in a list', withoutAmount(named('amount[]', '10000')), [200, 'AMOUNT_INVALID']],
  ['extra with __proto__', applied({ extra: '{"__proto__":"HDFC0001234"}' }), [200, 'EXTRA_INVALID']],
  ['a merchant called __proto__', applied({ mchId: '__proto__' }), [200, 'MERCHANT_NOT_FOUND']],
  ['a zero byte in a name', applied({ accountNo: '50100\u0000123456' }), [200, 'ACCOUNT_NO_INVALID']],
]

const AMOUNTS = [
  ...['1e4', '010000', '-100', '10000.0', '10000.00', '+10000', '0', '00', '', ' 10000', '10000 ', '10,000'],
  ...['0x2710', '1e400', 'NaN', 'Infinity', '१००००', '9007199254741092', '9007199254741000', '9'.repeat(400)],
]

describe('bad input', () => {
  let sandbox: Sandbox
  before(async () => {
    sandbox = await startSandbox({ state: newStateFile(), merchants: [{ mchId: MCH_ID, key: KEY }] })
  })
  after(() => sandbox.stop())

  const post = (path: string, type: string, body: string | Uint8Array) =>
    fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: typeof body === 'string' ? body : Buffer.from(body),
    })

  /** The books, every payout and every payin, from the inspection routes. */
  const everything = () =>
    Promise.all(
      ['books', 'orders', 'payins'].map(async (what) =>
        (await fetch(`${sandbox.url}/_sandbox/${what}?mchId=${MCH_ID}`)).text(),
      ),
    )

  /** Checks the answer to a request, and that nothing else changed. */
  async function refused({ path = APPLY, query = '', type = FORM, body }: Wrong): Promise<Refusal> {
    const before = await everything()
    const response = await post(path + query, type, body)
    const { retCode } = (await response.json()) as { retCode: string }
    assert.deepEqual(await everything(), before)
    return [response.status, retCode]
  }

  for (const [what, wrong, refusal] of WRONG) {
    test(`${what} is refused and changes nothing`, async () => {
      assert.deepEqual(await refused(wrong), refusal)
    })
  }

  test('a field of 1 MB is refused, or cut off during the upload, and changes nothing', async () => {
    const before = await everything()
    const { body } = applied({ remark: 'x'.repeat(1_000_000) })
    const status = await post(APPLY, FORM, body).then(
      (response) => response.status,
      (error: Error & { cause?: { code?: string } }) => error.cause?.code ?? error.message,
    )
    assert.ok([413, 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(status), String(status))
    assert.deepEqual(await everything(), before)
  })

  for (const amount of AMOUNTS) {
    const shown = amount.length > 20 ? `${amount.length} digits` : JSON.stringify(amount)
    test(`the amount ${shown} is refused in payouts and payins`, async () => {
      assert.deepEqual(await refused(applied({ amount })), [200, 'AMOUNT_INVALID'])
      assert.deepEqual(await refused(created({ amount })), [200, 'AMOUNT_INVALID'])
    })
  }

  test('a complete request with the same fields is accepted', async () => {
    const before = await everything()
    const { retCode } = (await (await post(APPLY, FORM, good)).json()) as { retCode: string }
    assert.equal(retCode, 'SUCCESS')
    assert.notDeepEqual(await everything(), before)
  })
})
