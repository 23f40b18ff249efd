import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyParams } from '../calls/apply.ts'
import { payinCreateParams } from '../calls/payin-create.ts'
import { DIALECT, KEY, ORDER, PAYIN } from '../testing.ts'
import { signature } from './sign.ts'
import { unsafeValuesIn } from './unsafe-values.ts'

const found = (change: Partial<typeof ORDER>) =>
  unsafeValuesIn(applyParams({ ...ORDER, ...change }, '20001', 'given'))

test('an ordinary payout has no unsafe value, though its address has a query string', () => {
  assert.deepEqual(found({}), [])
  assert.deepEqual(found({ accountName: 'राम कुमार', remark: "O'Brien + sons, 50% (रु)" }), [])
})

test('refuses a name with an ampersand, and the fault says what to write instead', () => {
  assert.deepEqual(found({ accountName: 'Rao & Sons' }), [
    {
      field: 'accountName',
      rule: 'signature-safe',
      message:
        'must not hold "&", which could forge a signed field: write "and" ("Rao & Sons" becomes "Rao and Sons")',
    },
  ])
})

test('names every such value, not only the first', () => {
  const fields = found({ accountName: 'A&B', remark: 'a=b', payerEmail: 'a\n@b.in' }).map(
    ({ field }) => field,
  )
  assert.deepEqual(fields, ['payerEmail', 'accountName', 'remark'])
})

test('refuses one value that would carry the signature of two fields', () => {
  const sign = (fields: Record<string, string>) =>
    signature(new Map(Object.entries(fields)), KEY, DIALECT.sign, 'requests')
  assert.equal(sign({ accountName: 'A&accountNo=1' }), sign({ accountName: 'A', accountNo: '1' }))
  assert.equal(found({ accountName: 'A&accountNo=1' })[0]?.field, 'accountName')
})

test('refuses a character that could forge a field in every value that somebody else wrote', () => {
  const field = fc.constantFrom(
    ...([
      'mchOrderNo',
      'currency',
      'accountName',
      'accountNo',
      'phoneNumber',
      'payerEmail',
      'remark',
    ] as const),
  )
  const bad = fc.constantFrom('&', '=', '\n', '\r', '\0', '\t', '\u007f')
  fc.assert(
    fc.property(field, bad, fc.string(), fc.string(), (name, character, before, after) => {
      assert.equal(found({ [name]: before + character + after })[0]?.field, name)
    }),
  )
})

test('an address may have one parameter, and nothing that could be read as another field of the request', () => {
  const inAddresses = (address: string) => [
    ...unsafeValuesIn(applyParams({ ...ORDER, notifyUrl: address }, '20001', 'given')),
    ...unsafeValuesIn(payinCreateParams({ ...PAYIN, returnUrl: address }, '20001')),
  ]
  assert.deepEqual(inAddresses('https://shop.example.in/thanks?order=7'), [])
  const bad = fc.constantFrom('&', '#', '\n', '\r', '\0', '\t', '\u007f', '\ud83d')
  fc.assert(
    fc.property(bad, fc.webUrl({ withQueryParameters: true }), (character, address) => {
      const fields = inAddresses(`${address}${character}status=2`).map(({ field }) => field)
      assert.deepEqual(fields, ['notifyUrl', 'returnUrl'])
    }),
  )
})

test('checks the destination inside "extra" as well', () => {
  assert.equal(found({ ifsc: null, vpa: 'a@b&accountNo=1' })[0]?.field, 'extra')
})

test('refuses text that has no UTF-8', () => {
  assert.equal(found({ remark: 'half a smile \ud83d' })[0]?.rule, 'unicode')
})
