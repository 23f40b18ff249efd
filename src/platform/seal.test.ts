import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { DoesNotOpen, type SealingKeys, seal, unseal } from './seal.ts'

const one = createSecretKey(Buffer.alloc(32, 1))
const two = createSecretKey(Buffer.alloc(32, 2))
const keys: SealingKeys = { current: 1, keys: new Map([[1, one]]) }

test('sealed text opens in its own context, and in no other', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.string(), fc.string(), (bytes, context, other) => {
      const sealed = seal(Buffer.from(bytes), context, keys)
      assert.deepEqual(unseal(sealed, context, keys), Buffer.from(bytes))
      if (other !== context) assert.throws(() => unseal(sealed, other, keys))
    }),
  )
})

test('a changed byte anywhere is caught', () => {
  const sealed = seal(Buffer.from('50100123456789'), 'payout:acme:p1', keys)
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed)
    changed[i] = (changed[i] as number) ^ 1
    assert.throws(() => unseal(changed, 'payout:acme:p1', keys), DoesNotOpen, `byte ${i}`)
  }
})

test('the same text is sealed differently each time', () => {
  const all = new Set(Array.from({ length: 2_000 }, () => seal(Buffer.from('x'), 'c', keys).toString('hex')))
  assert.equal(all.size, 2_000)
})

test('a new key seals from now on, and the old one still opens what it sealed', () => {
  const old = seal(Buffer.from('x'), 'c', keys)
  const rotated: SealingKeys = {
    current: 2,
    keys: new Map([
      [1, one],
      [2, two],
    ]),
  }
  assert.equal(seal(Buffer.from('x'), 'c', rotated)[0], 2)
  assert.equal(unseal(old, 'c', rotated).toString(), 'x')
  assert.throws(
    () => unseal(old, 'c', { current: 2, keys: new Map([[2, two]]) }),
    (error) => error instanceof DoesNotOpen && error.keyId === 1,
  )
})
