import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { sign } from '../testing.ts'
import { STANDARD } from './dialect.ts'
import { isSignedBy, type Signable } from './sign.ts'

type Vector = { key: string; params: Signable; sign: string }
const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../../../test/sign-vectors.json', import.meta.url), 'utf8'),
)

test('all 24 signatures made by a real gateway of the family are reproduced', () => {
  assert.equal(vectors.length, 24)
  for (const { key, params, sign: expected } of vectors) assert.equal(sign(params, key), expected)
})

test('a signature ignores empty parameters and the signature itself', () => {
  const signature = sign({ mchId: 'M1' }, 'k')
  assert.equal(sign({ mchId: 'M1', remark: '', extra: null, sign: 'ABC' }, 'k'), signature)
  assert.notEqual(sign({ mchId: 'M1', remark: '0' }, 'k'), signature)
})

test('an object is signed as its JSON text on the wire', () => {
  const fields = { retCode: 'SUCCESS', payParams: { payMethod: 'urlJump', url: 'upi://pay?a=1&b="2"' } }
  const text = '{"payMethod":"urlJump","url":"upi://pay?a=1&b=\\"2\\""}'
  assert.equal(sign(fields, 'k'), sign({ ...fields, payParams: text }, 'k'))
})

test('letters are compared one by one as Java does, not as whole words', () => {
  // As strings 'ß'.toUpperCase() is 'SS', which would come before 'sz'.
  assert.equal(sign({ ß: '1', sz: '1' }, 'k'), sign({ sz: '1', ß: '1' }, 'k'))
  assert.equal(sign({ ß: '1', sz: '1' }, 'k'), 'C2FC9FBE5399BA65233A1B79A9227249')
})

test('a signature holds only for its own parameters and key', () => {
  const params = { mchId: 'M1', amount: '10000' }
  const signature = sign(params, 'k')
  const holds = (of: Signable, key: string, given: string) => isSignedBy(of, key, STANDARD.sign, given)
  assert.ok(holds(params, 'k', signature))
  assert.ok(!holds({ ...params, amount: '10100' }, 'k', signature))
  assert.ok(!holds(params, 'K', signature))
  assert.ok(!holds(params, 'k', signature.toLowerCase()))
  assert.ok(!holds(params, 'k', ''))
  assert.ok(!holds(params, 'k', `${signature}0`))
})
