import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DIALECT, EVERY_VARIANT, KEY, rulesOf } from '../testing.ts'
import { signature } from './sign.ts'
import { type SignVariant, variantsThatVerify } from './sign-variants.ts'

/** Fields that distinguish all settings: the sorts disagree on the last two, and one is empty. */
const TELLING = { mchOrderNo: 'P1', errorMessage: '', bank: '2', bank1: '1' }

const signedBy = (variant: SignVariant, given: Record<string, string>) => {
  const fields = new Map(Object.entries(given))
  return fields.set('sign', signature(fields, KEY, rulesOf(variant), 'callbacks'))
}

test('finds the one variant that signed a distinctive callback, among all 32', () => {
  assert.equal(EVERY_VARIANT.length, 32)
  for (const variant of EVERY_VARIANT) {
    assert.deepEqual(variantsThatVerify(signedBy(variant, TELLING), KEY), [variant])
  }
})

test('names all settings that the callback cannot distinguish, the default first', () => {
  const { algorithm, sort, hexCase, keySuffix } = DIALECT.sign
  const ordinary = { algorithm, sort, hexCase, keySuffix, emptyFields: false }
  const found = variantsThatVerify(signedBy(ordinary, { amount: '100', status: '2' }), KEY)
  assert.deepEqual(found[0], ordinary)
  assert.equal(found.length, 4)
  assert.deepEqual(
    new Set(found.map((each) => `${each.algorithm} ${each.hexCase} ${each.keySuffix}`)).size,
    1,
  )
})

test('finds no variant with another key, a changed value or no signature', () => {
  const fields = signedBy({ ...DIALECT.sign, emptyFields: false }, TELLING)
  assert.equal(variantsThatVerify(fields, KEY).length, 1)
  assert.deepEqual(variantsThatVerify(fields, `${KEY}x`), [])
  assert.deepEqual(variantsThatVerify(new Map(fields).set('bank', '3'), KEY), [])
  assert.deepEqual(variantsThatVerify(new Map(Object.entries(TELLING)), KEY), [])
})
