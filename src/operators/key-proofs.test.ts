import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { type KeyPair, proveKeys } from './key-proofs.ts'
import { storedProofs } from './sql/key-proofs.ts'

const newKey = () => createSecretKey(randomBytes(32))
const first = newKey()
const second = newKey()
const fingerprint = newKey()

/** Encryption keys with the ids 1, 2, … in this order; the last one seals. */
const keys = (...encryption: KeyPair['fingerprint'][]): KeyPair => ({
  sealing: { current: encryption.length, keys: new Map(encryption.map((key, i) => [i + 1, key])) },
  fingerprint,
})

test('a process with the same keys, or with a new one under a higher id, may work', async (t) => {
  const { db } = await freshDatabase(t)
  await proveKeys(db, keys(first))
  await proveKeys(db, keys(first))
  await proveKeys(db, keys(first, second))
  assert.deepEqual(
    (await db.run(storedProofs, {})).map(({ keyId }) => keyId),
    [0, 1, 2],
  )
})

test('another key under an id that was in use is refused, with what to do', async (t) => {
  const { db } = await freshDatabase(t)
  await proveKeys(db, keys(first))
  await assert.rejects(proveKeys(db, keys(second)), {
    message:
      'key 1 in ENCRYPTION_KEYS does not decrypt what was encrypted with key 1: ' +
      'put the former key back as 1, and give a new key a higher id',
  })
})

test('keys that lack one that was in use are refused', async (t) => {
  const { db } = await freshDatabase(t)
  await proveKeys(db, keys(first))
  const withoutFirst = { sealing: { current: 2, keys: new Map([[2, second]]) }, fingerprint }
  await assert.rejects(
    proveKeys(db, withoutFirst),
    /^Error: encryption key 1 was used, but is not in ENCRYPTION_KEYS: add key 1 again/,
  )
})

test('another fingerprint key is refused, before it makes repeats look like other content', async (t) => {
  const { db } = await freshDatabase(t)
  await proveKeys(db, keys(first))
  await assert.rejects(
    proveKeys(db, { ...keys(first), fingerprint: newKey() }),
    /FINGERPRINT_KEY is not the key with which payoutd accepted payouts/,
  )
})

test('a new key that arrives with a wrong one leaves nothing behind', async (t) => {
  const { db } = await freshDatabase(t)
  await proveKeys(db, keys(first))
  await assert.rejects(proveKeys(db, keys(newKey(), newKey())))
  await proveKeys(db, keys(first, second))
})

test('of processes that start at once with different keys, those with one set of keys work', async (t) => {
  const { db } = await freshDatabase(t)
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => proveKeys(db, keys(newKey()))))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})
