import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { accepted, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { type KeyPair, proveKeys } from '../operators/key-proofs.ts'
import { decided } from '../operators/operations.fixture.ts'
import { storedProofs } from '../operators/sql/key-proofs.ts'
import { hold } from '../stages/dispatch/undecryptable.ts'
import { checkAwaiting, checkKeys } from './keys.ts'
import { awaitingKey } from './sql/awaiting-key.ts'

const newKeys = (): KeyPair => ({
  sealing: { current: 1, keys: new Map([[1, createSecretKey(randomBytes(32))]]) },
  fingerprint: createSecretKey(randomBytes(32)),
})

test('doctor reports about keys what a process that uses them would report, and stores no proof', async (t) => {
  const { ledger } = await testLedger(t)
  const [ours, others] = [newKeys(), newKeys()]
  assert.equal(checkKeys(await ledger.db.run(storedProofs, {}), others).state, 'good')
  await proveKeys(ledger.db, ours)
  const proofs = await ledger.db.run(storedProofs, {})
  assert.equal(checkKeys(proofs, ours).state, 'good')
  assert.match(
    checkKeys(proofs, { ...ours, sealing: others.sealing }).what,
    /does not decrypt what was encrypted with key 1/,
  )
})

test('payouts that wait for a key are counted by merchant and key', async (t) => {
  const { ledger, config } = await testLedger(t)
  assert.equal(checkAwaiting(await ledger.db.run(awaitingKey, {})).state, 'good')
  await accepted(
    ledger,
    config,
    ['p1', 'p2', 'sent'].map((id) => command(id)),
  )
  const [, key] = [...newKeys().sealing.keys][0] as [number, KeyPair['fingerprint']]
  const rotated = { ...config, sealing: { current: 7, keys: new Map([[7, key]]) } }
  await accepted(ledger, rotated, [command('p3')])
  for (const id of ['p1', 'p2', 'p3']) await decided(ledger, id, (payout) => hold(payout, 1))
  assert.deepEqual(checkAwaiting(await ledger.db.run(awaitingKey, {})), {
    state: 'wrong',
    what: '2 payouts of merchant acme wait for key 1; 1 payout of merchant acme waits for key 7',
    todo: 'add that key to ENCRYPTION_KEYS, and restart payoutd serve',
  })
})
