import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { request } from 'undici'
import { sql } from '../src/platform/postgres/postgres.ts'
import { openCallbackEndpoints } from './callback-endpoints.ts'
import { anomaliesOf } from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'

/** Everything that a callback could change. */
const contents = sql<object, { everything: string }>`
  select concat((select json_agg(t order by order_no) from payouts t),
                (select json_agg(t order by payin_id) from payins t),
                (select count(*) from history), (select count(*) from anomalies),
                (select count(*) from ${outboxMessages})) as everything`

const SETTLED = {
  payout: sql<object, { state: string }>`select state from payouts`,
  payin: sql<object, { state: string }>`select state from payins`,
}

type RawRequest = { url?: string; method?: 'GET' | 'POST'; type?: string; body?: string }
type Refusal = readonly [httpStatus: number, said: string | null]
/** `null`: the HTTP server answers, not the endpoint. */
const ENCODING: Refusal = [400, 'malformed: bad-encoding']
const FORM = 'application/x-www-form-urlencoded;charset=UTF-8'

/**
 * What HTTP clients add to a POST with everything in its URL: Hutool and PHP send a form's content type without a
 * form.
 */
const BESIDE: readonly RawRequest[] = [
  { type: FORM },
  { type: FORM, body: '' },
  { type: 'application/json', body: '' },
  { type: 'application/json', body: 'null' },
  { type: FORM, body: 'amount=1' },
  { body: 'amount=1' },
  { type: 'form' },
  { type: ';', body: 'amount=1' },
]

/** Each is made from the query string of a good callback. */
const WRONG: readonly (readonly [what: string, of: (good: string) => RawRequest, refusal: Refusal])[] = [
  ['no query string', () => ({ url: '' }), [400, 'malformed: empty']],
  ['a repeated parameter', (good) => ({ url: `?${good}&amount=1` }), [400, 'malformed: repeated-parameter']],
  ['a repeated signature', (good) => ({ url: `?${good}&sign=x` }), [400, 'malformed: repeated-parameter']],
  ['a parameter without a name', (good) => ({ url: `?=1&${good}` }), [400, 'malformed: unnamed-parameter']],
  ['a percent sign that begins no byte', (good) => ({ url: `?${good}&x=%zz` }), [401, 'bad signature']],
  ['a percent sign at the end', (good) => ({ url: `?${good}&x=%` }), [401, 'bad signature']],
  ['bytes that are no UTF-8', (good) => ({ url: `?${good}&x=%ff%fe` }), ENCODING],
  ['an overlong form of a slash', (good) => ({ url: `?${good}&x=%c0%af` }), ENCODING],
  ['__proto__ added', (good) => ({ url: `?${good}&__proto__=1` }), [401, 'bad signature']],
  ['constructor added', (good) => ({ url: `?${good}&constructor=1` }), [401, 'bad signature']],
  [
    'an amount changed',
    (good) => ({ url: `?${good.replace('amount=', 'amount=1')}` }),
    [401, 'bad signature'],
  ],
  [
    '65 parameters',
    (good) => ({ url: `?${good}${'&x=1'.repeat(65)}` }),
    [400, 'malformed: too-many-parameters'],
  ],
  ['a field of 9 KB', (good) => ({ url: `?${good}&x=${'x'.repeat(9_000)}` }), [400, 'malformed: too-long']],
  ['a field of 20 KB', (good) => ({ url: `?${good}&x=${'x'.repeat(20_000)}` }), [431, null]],
  [
    'parameters in the body alone',
    (good) => ({ url: '', type: FORM, body: good }),
    [400, 'malformed: empty'],
  ],
  [
    'an amount changed, and the good one in the body',
    (good) => ({ url: `?${good.replace('amount=', 'amount=1')}`, type: FORM, body: good }),
    [401, 'bad signature'],
  ],
  [
    'a body of 1 MB',
    (good) => ({ url: `?${good}`, type: 'application/json', body: `"${'x'.repeat(1_000_000)}"` }),
    [413, null],
  ],
]

/** Well signed, but not an amount that anybody owes. */
const AMOUNTS = ['1e4', '010000', '-100', '10000.0', '+5000000', '5000000 ', '', '9007199254741092', 'NaN']

for (const kind of ['payout', 'payin'] as const) {
  describe(`the callback endpoint of ${kind}s`, () => {
    async function openEndpoint(t: TestContext) {
      const { ledger, sign, endpoints } = await openCallbackEndpoints(t)
      const { url, fields } = endpoints[kind]
      const everything = async () => (await ledger.db.run(contents, {}))[0]?.everything
      const send = async ({ url: rest = '', method = 'POST', type, body }: RawRequest): Promise<Refusal> => {
        const headers = type === undefined ? {} : { 'content-type': type }
        const answer = await request(url + rest, { method, headers, body: body ?? null })
        return [answer.statusCode, await answer.body.text()]
      }
      const signed = (over: Record<string, string> = {}) => sign(Object.entries({ ...fields, ...over }))
      return { ledger, everything, send, signed }
    }

    test('bad input of every kind is refused and changes nothing', async (t) => {
      const { everything, send, signed } = await openEndpoint(t)
      const untouched = await everything()
      for (const [what, of, [httpStatus, said]] of WRONG) {
        const answer = await send(of(signed()))
        assert.equal(answer[0], httpStatus, what)
        if (said !== null) assert.equal(answer[1], said, what)
        assert.equal(await everything(), untouched, what)
      }
      assert.deepEqual(await send({ url: `?${signed()}` }), [200, 'success'])
      assert.notEqual(await everything(), untouched)
    })

    test('only the query string counts, whatever content type and body come with it', async (t) => {
      for (const beside of BESIDE) {
        const { ledger, send, signed } = await openEndpoint(t)
        assert.deepEqual(
          await send({ url: `?${signed()}`, ...beside }),
          [200, 'success'],
          JSON.stringify(beside),
        )
        const [{ state } = { state: null }] = await ledger.db.run(SETTLED[kind], {})
        assert.equal(state, 'paid')
      }
    })

    test('a field of 1 MB is refused, or cut off during the upload', async (t) => {
      const { everything, send, signed } = await openEndpoint(t)
      const untouched = await everything()
      const url = `?${signed({ errorMessage: 'x'.repeat(1_000_000) })}`
      const [httpStatus] = await send({ url }).catch(({ code }: { code: string }) => [code])
      assert.ok([431, 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(httpStatus ?? ''), String(httpStatus))
      assert.equal(await everything(), untouched)
    })

    test('a signed amount that differs from the order’s, however it is written, pays nothing and is kept', async (t) => {
      const { ledger, send, signed } = await openEndpoint(t)
      for (const amount of AMOUNTS) {
        assert.deepEqual(await send({ url: `?${signed({ amount })}` }), [200, 'success'], amount)
      }
      assert.deepEqual(new Set(await anomaliesOf(ledger)), new Set(['amount-mismatch']))
      const paid = sql<object>`
        select 1 from payouts where state = 'paid' union all select 1 from payins where state = 'paid'`
      assert.deepEqual(await ledger.db.run(paid, {}), [])
    })
  })
}
