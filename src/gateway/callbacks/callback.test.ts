import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { payinCreateParams } from '../calls/payin-create.ts'
import { DIALECT, KEY, PAYIN } from '../testing.ts'
import { signature } from '../wire/sign.ts'
import { parsePayinCallback, parsePayoutCallback } from './callback.ts'

const PAID = {
  ...{ amount: '10000', mchOrderNo: 'P1', fee: '300', channelPayNo: '432112345678' },
  ...{ agentpayOrderId: 'AP1', status: '2', errorMessage: '' },
}

const signed = (fields: Record<string, string>): [string, string][] => [
  ...Object.entries(fields),
  ['sign', signature(new Map(Object.entries(fields)), KEY, DIALECT.sign, 'callbacks')],
]
/** As URLSearchParams and PHP write it: a space becomes a plus. */
const asForm = (pairs: [string, string][]) => new URLSearchParams(pairs).toString()
/** As a URI library writes it, with the characters that may stay unescaped: a plus stays a plus. */
const asUri = (pairs: [string, string][]) =>
  pairs.map((pair) => pair.map((text) => encodeURIComponent(text).replaceAll('%2B', '+')).join('=')).join('&')

const parse = (query: string) => parsePayoutCallback(query, DIALECT, KEY)

test('a well-signed callback is a report about its order', () => {
  const { sign, ...kept } = Object.fromEntries(signed(PAID))
  assert.ok(sign)
  assert.deepEqual(parse(asForm(signed(PAID))), {
    kind: 'verified',
    report: {
      ...{ mchOrderNo: 'P1', agentpayOrderId: 'AP1', status: 'success', amount: 10_000n, fee: 300n },
      ...{ utr: '432112345678', errorMessage: null, exchange: { request: kept } },
    },
  })
})

test('a failed payout shows its reason, without possible account numbers', () => {
  const failed = {
    ...PAID,
    status: '3',
    channelPayNo: '',
    errorMessage: 'Account 50100123456789 + more: closed',
  }
  const result = parse(asForm(signed(failed)))
  assert.equal(result.kind === 'verified' && result.report.status, 'failed')
  assert.equal(result.kind === 'verified' && result.report.utr, null)
  assert.equal(result.kind === 'verified' && result.report.errorMessage, 'Account ••••6789 + more: closed')
  assert.doesNotMatch(
    JSON.stringify(result, (_, value) => String(value) && (typeof value === 'bigint' ? `${value}` : value)),
    /50100123456789/,
  )
})

test('a plus is read as the sender meant it, a space or a plus', () => {
  const fields = { ...PAID, errorMessage: '1 + 1 = 2' }
  const message = (query: string) => {
    const result = parse(query)
    return result.kind === 'verified' ? result.report.errorMessage : result.kind
  }
  assert.equal(message(asForm(signed(fields))), '1 + 1 = 2')
  assert.equal(message(asUri(signed(fields))), '1 + 1 = 2')
  const plus = asUri(signed({ ...fields, errorMessage: 'a+b' }))
  assert.match(plus, /errorMessage=a\+b/)
  assert.equal(message(plus), 'a+b')
})

test('the signature covers every parameter, unknown ones too', () => {
  assert.equal(parse(asForm(signed({ ...PAID, zone: 'south' }))).kind, 'verified')
  assert.equal(parse(`${asForm(signed(PAID))}&zone=south`).kind, 'bad-signature')
  // The signature leaves out empty parameters.
  assert.equal(parse(`${asForm(signed(PAID))}&zone=`).kind, 'verified')
})

test('unsigned parameters are not kept, and a callback that carries them ends nothing', () => {
  const { errorMessage, ...filled } = PAID
  assert.equal(errorMessage, '')
  for (const fields of [PAID, filled]) {
    const good = asForm(signed(fields))
    const { doubt, status } = report(good)
    assert.deepEqual([doubt, status], [undefined, 'success'])
    for (const extra of ['zone=', 'notifyUrl=', 'x%26y=', '__proto__=']) {
      const { request } = report(good).exchange
      const { doubt, status, exchange } = report(`${good}&${extra}`)
      assert.deepEqual([doubt, status], ['unsigned-parameters', 'unlisted'], extra)
      assert.deepEqual(exchange.request, request)
    }
  }
  const signEmpty = {
    sign: { ...DIALECT.sign, emptyFields: { ...DIALECT.sign.emptyFields, callbacks: true } },
  }
  const pairs: [string, string][] = [...Object.entries(PAID), ['zone', '']]
  const sign = signature(new Map(pairs), KEY, signEmpty.sign, 'callbacks')
  const read = parsePayoutCallback(asForm([...pairs, ['sign', sign]]), signEmpty, KEY)
  assert.equal(read.kind === 'verified' && read.report.status, 'success')
})

test('a callback without a signature, or signed with another key, is not trusted', () => {
  assert.equal(parse(asForm(Object.entries(PAID))).kind, 'bad-signature')
  assert.equal(parse(`${asForm(Object.entries(PAID))}&sign=`).kind, 'bad-signature')
  assert.equal(parsePayoutCallback(asForm(signed(PAID)), DIALECT, 'another key').kind, 'bad-signature')
})

test('percent signs are decoded once', () => {
  const result = parse(asForm(signed({ ...PAID, errorMessage: '%41%2526' })))
  assert.equal(result.kind === 'verified' && result.report.errorMessage, '%41%2526')
})

test('a percent sign that begins no byte stays itself', () => {
  for (const errorMessage of ['50% off', '100%', '5%zz', '%4']) {
    const bare = asForm(signed({ ...PAID, errorMessage })).replace('%25', '%')
    const result = parse(bare)
    assert.equal(result.kind === 'verified' && result.report.errorMessage, errorMessage)
  }
})

test('a callback without exactly one reading is malformed, and the result says why', () => {
  const why = (query: string) => {
    const result = parse(query)
    return result.kind === 'malformed' ? result.why : result.kind
  }
  const good = asForm(signed(PAID))
  assert.equal(why(''), 'empty')
  assert.equal(why(`${good}&status=3`), 'repeated-parameter')
  assert.equal(why(`${good}&st%61tus=3`), 'repeated-parameter')
  assert.equal(why(`${good}&x=%ff`), 'bad-encoding')
  assert.equal(why(`${good}&x=%ed%a0%80`), 'bad-encoding')
  assert.equal(why(`${good}&=x`), 'unnamed-parameter')
  assert.equal(why(`${good}&x`), 'unnamed-parameter')
  assert.equal(why(`${good}&&x=1`), 'unnamed-parameter')
  assert.equal(why(`x=${'1'.repeat(8_200)}`), 'too-long')
  assert.equal(why(Array.from({ length: 65 }, (_, i) => `x${i}=1`).join('&')), 'too-many-parameters')
})

test('a value that swallowed its neighbour keeps the signature but ends nothing', () => {
  // amount=10000&channelPayNo=… was signed as two fields and sent as one: the signed text is the same.
  const { channelPayNo, ...rest } = PAID
  const pairs = signed(PAID).map(([name, value]): [string, string] => [name, value])
  const forged = pairs.flatMap(([name, value]): [string, string][] =>
    name === 'channelPayNo'
      ? []
      : name === 'amount'
        ? [[name, `${value}&channelPayNo=${channelPayNo}`]]
        : [[name, value]],
  )
  assert.equal(rest.amount, '10000')
  const result = parse(asForm(forged))
  assert.equal(result.kind, 'verified')
  assert.equal(result.kind === 'verified' && result.report.amount, null)
})

test('names of Object.prototype are ordinary names', () => {
  const fields = new Map([...Object.entries(PAID), ['__proto__', 'x'], ['constructor', 'y']])
  const sign = signature(fields, KEY, DIALECT.sign, 'callbacks')
  const result = parse(asForm([...fields, ['sign', sign]]))
  assert.equal(result.kind, 'verified')
  const request = result.kind === 'verified' ? result.report.exchange.request : undefined
  assert.equal(Object.getOwnPropertyDescriptor(request, '__proto__')?.value, 'x')
  assert.equal(Object.getPrototypeOf(request), Object.prototype)
})

test('a signed callback that names no known order is still evidence, about no payout', () => {
  const { mchOrderNo, ...nameless } = PAID
  assert.ok(mchOrderNo)
  const result = parse(asForm(signed(nameless)))
  assert.equal(result.kind === 'verified' && result.report.mchOrderNo, '')
})

const text = fc.string({ unit: 'grapheme' })

test('every text that a gateway signs and encodes, either way, is read back unchanged', () => {
  fc.assert(
    fc.property(text, text, (errorMessage, extra) => {
      fc.pre(errorMessage.isWellFormed() && extra.isWellFormed())
      const pairs = signed({ ...PAID, errorMessage, extra })
      assert.equal(parse(asForm(pairs)).kind, 'verified')
      assert.equal(parse(asUri(pairs)).kind, 'verified')
    }),
  )
})

test('every changed byte of a callback is caught, and no input makes the parser throw', () => {
  const good = asForm(signed(PAID))
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
      fc.pre(good[at] !== character)
      const changed = good.slice(0, at) + character + good.slice(at + 1)
      const result = parse(changed)
      // "errorMessage=" is empty and unsigned: its name may change, but not the values that are read.
      if (result.kind === 'verified') {
        const { status, doubt, ...said } = result.report
        assert.ok(status === 'success' || status === 'unlisted')
        assert.equal(doubt !== undefined, status === 'unlisted')
        assert.deepEqual({ ...said, status, exchange: {} }, { ...report(good), status, exchange: {} })
      }
    }),
  )
  fc.assert(fc.property(fc.string(), (query) => assert.notEqual(parse(query).kind, 'verified')))
})

function report(query: string) {
  const result = parse(query)
  assert.ok(result.kind === 'verified')
  return result.report
}

test('a signed text with another reading ends nothing', () => {
  const { status, ...pending } = PAID
  const odd = [
    { ...pending, remark: `a&status=${status}` },
    { ...PAID, errorMessage: 'a=b' },
    { ...PAID, errorMessage: 'a\nb' },
    { ...PAID, 'x y': 'z' },
    { ...PAID, 'status&x': '2' },
  ]
  for (const fields of odd) {
    const { status, doubt } = report(asUri(signed(fields)))
    assert.deepEqual([status, doubt], ['unlisted', 'several-readings'], JSON.stringify(fields))
  }
})

test('a request of ours sent back as a callback ends nothing, however its address is read', () => {
  const params = payinCreateParams({ ...PAYIN, returnUrl: 'https://shop.example.in/?a=1&status=2' }, '20001')
  const sign = signature(params, KEY, DIALECT.sign, 'requests')
  const request = [...params].map(([name, value]) => [name, String(value)] as [string, string])
  const split = request.flatMap(([name, value]): [string, string][] =>
    name === 'returnUrl'
      ? [
          [name, 'https://shop.example.in/?a=1'],
          ['status', '2'],
        ]
      : [[name, value]],
  )
  const merged = split.flatMap(([name, value]): [string, string][] => {
    if (name === 'notifyUrl') return []
    return name === 'mchOrderNo' ? [[name, `${value}&notifyUrl=${PAYIN.notifyUrl}`]] : [[name, value]]
  })
  for (const reading of [split, merged]) {
    const read = parsePayinCallback(asUri([...reading, ['sign', sign]]), DIALECT, KEY)
    assert.ok(read.kind === 'verified')
    assert.deepEqual([read.report.status, read.report.doubt], ['unlisted', 'of-a-request'])
  }
})

const COLLECTED = {
  ...{ payOrderId: 'PI1', paySuccTime: '1795262400000', amount: '25000', mchId: '20001', mchOrderNo: 'C1' },
  ...{
    channelPayNo: '432112345678',
    backType: '2',
    channelCode: 'upi_intent',
    status: '2',
    errorMessage: '',
  },
}

test('a well-signed payin callback is a report about its payin, in paise and milliseconds', () => {
  assert.deepEqual(parsePayinCallback(asForm(signed(COLLECTED)), DIALECT, KEY), {
    kind: 'verified',
    report: {
      ...{ mchOrderNo: 'C1', payOrderId: 'PI1', status: 'paid', amount: 25_000n, currency: null },
      ...{ utr: '432112345678', productId: null, voucherMap: null, paidAt: Date.UTC(2026, 10, 21, 12) },
      ...{ errorMessage: null, notifyStatus: null, mchId: '20001', backType: '2', channelCode: 'upi_intent' },
      exchange: { request: COLLECTED },
    },
  })
})

test('a payin callback needs the same signature, and exactly one reading', () => {
  const read = (query: string, key = KEY) => parsePayinCallback(query, DIALECT, key).kind
  assert.equal(read(asForm(signed(COLLECTED)), 'another key'), 'bad-signature')
  assert.equal(read(asForm(signed(COLLECTED)).replace('status=2', 'status=3')), 'bad-signature')
  assert.equal(read(`${asForm(signed(COLLECTED))}&status=3`), 'malformed')
  assert.equal(read(asUri(signed({ ...COLLECTED, errorMessage: 'a+b c' }))), 'verified')
})
