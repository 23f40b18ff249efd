import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paise } from '../domain/money.ts'
import { applyParams } from './calls/apply.ts'
import { payinCreateParams } from './calls/payin-create.ts'
import { answered, EVERY_VARIANT, KEY, ORDER, PAYIN, rulesOf } from './testing.ts'
import { readJsonFields } from './wire/json-fields.ts'
import { encode, type Params, type WireRequest } from './wire/request.ts'
import { type Fields, signature, verify } from './wire/sign.ts'
import { readSignedQuery } from './wire/signed-query.ts'
import { unsafeValuesIn } from './wire/unsafe-values.ts'
import { readBody, verifyAnswer } from './wire/verify-answer.ts'

const anyRules = fc.constantFrom(...EVERY_VARIANT).map(rulesOf)
const anyBody = fc.constantFrom('form', 'json', 'query')
const anyText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
const named = fc.uniqueArray(
  fc.tuple(
    anyText.filter((text) => text !== 'sign' && text !== 'retCode'),
    anyText,
  ),
  {
    selector: ([name]) => name,
    minLength: 1,
    maxLength: 8,
  },
)

/** Requests of both kinds, with arbitrary text in every field that somebody else writes. */
const anyParams: fc.Arbitrary<Params> = fc
  .tuple(
    fc.bigInt({ min: 1n, max: 10n ** 15n }),
    fc.array(anyText, { minLength: 7, maxLength: 7 }),
    fc.boolean(),
  )
  .map(([amount, texts, payout]) => {
    const [mchId, mchOrderNo, accountName, accountNo, payerEmail, remark, vpa] = texts as [
      ...[string, string, string, string, string, string, string],
    ]
    const common = { mchOrderNo, amount: paise(amount), accountName, payerEmail, remark }
    return payout
      ? applyParams({ ...ORDER, ...common, accountNo, ifsc: null, vpa }, mchId, 'given')
      : payinCreateParams({ ...PAYIN, ...common }, mchId)
  })

/** As another implementation reads our requests. */
function decode({ path, contentType, body }: WireRequest): Fields | null {
  if (contentType === 'application/json') return readJsonFields(body)
  return new Map(new URLSearchParams(body === '' ? path.slice(path.indexOf('?') + 1) : body))
}

const signedOver = (
  fields: Fields,
  ...args: [Parameters<typeof signature>[2], Parameters<typeof signature>[3]]
) => new Map(fields).set('sign', signature(fields, KEY, ...args))

/** A text with one byte changed. */
const withOneByteChanged = (text: string, where: number, difference: number): Buffer => {
  const bytes = Buffer.from(text)
  const at = where % bytes.length
  bytes[at] = (bytes[at] as number) ^ difference
  return bytes
}
const difference = fc.integer({ min: 1, max: 255 })

test('the receiver can verify every request, in every dialect, unless it is refused for forging', () => {
  fc.assert(
    fc.property(anyParams, anyRules, anyBody, (params, rules, body) => {
      fc.pre(unsafeValuesIn(params).length === 0)
      const signed = signedOver(params, rules, 'requests') as Map<string, string>
      const arrived = decode(encode(signed, '/apply', body))
      assert.ok(arrived)
      assert.equal(verify(arrived, KEY, rules, 'requests'), 'good')
      assert.deepEqual(
        [...arrived].map(([name, value]) => [name, String(value)]),
        [...signed].map(([name, value]) => [name, String(value)]),
      )
    }),
    { numRuns: 500 },
  )
})

test('a text that the receiver would read as two fields is refused before it is signed', () => {
  fc.assert(
    fc.property(
      anyParams,
      anyText,
      fc.constantFrom('accountName', 'payerEmail', 'remark'),
      (params, text, name) => {
        const forged = new Map(params).set(name, `${text}&accountNo=1`)
        assert.ok(unsafeValuesIn(forged).some(({ field }) => field === name))
      },
    ),
  )
})

test('one changed byte anywhere in an answer is caught, in every dialect', () => {
  fc.assert(
    fc.property(named, anyRules, fc.nat(), difference, (pairs, rules, where, change) => {
      const fields = signedOver(new Map([['retCode', 'SUCCESS'], ...pairs]), rules, 'answers')
      const text = encode(fields as Map<string, string>, '', 'json').body
      const heardOf = (body: string | Buffer) => {
        const sent = answered(body)
        return verifyAnswer(sent, readBody(sent).fields, KEY, rules, 'required')
      }
      const before = heardOf(text)
      assert.equal(before.kind, 'answer')
      const after = heardOf(withOneByteChanged(text, where, change))
      if (after.kind === 'answer') assert.deepEqual(after, before)
    }),
    { numRuns: 2_000 },
  )
})

test('one changed byte anywhere in a callback is caught, in every dialect', () => {
  fc.assert(
    fc.property(named, anyRules, fc.nat(), difference, (pairs, rules, where, change) => {
      const fields = signedOver(new Map(pairs), rules, 'callbacks') as Map<string, string>
      const query = new URLSearchParams([...fields]).toString()
      const before = readSignedQuery(query, rules, KEY)
      assert.equal(before.kind, 'verified')
      const changed = withOneByteChanged(query, where, change).toString('latin1')
      const after = readSignedQuery(changed, rules, KEY)
      if (after.kind === 'verified') assert.deepEqual(after, before)
    }),
    { numRuns: 2_000 },
  )
})
