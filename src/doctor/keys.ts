import { type KeyPair, keyFault } from '../operators/key-proofs.ts'
import { type KeyProof, storedProofs } from '../operators/sql/key-proofs.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'
import { type AwaitingKey, awaitingKey } from './sql/awaiting-key.ts'

export const keyChecks = (db: Database, keys: KeyPair): Check[] => [
  {
    name: 'keys',
    needs: ['migrations'],
    run: async () => checkKeys(await db.run(storedProofs, {}), keys),
  },
  {
    name: 'sealed payouts',
    needs: ['migrations'],
    run: async () => checkAwaiting(await db.run(awaitingKey, {})),
  },
]

/** Stores no proof of its own: that is for the process that uses the keys. */
export function checkKeys(proofs: readonly KeyProof[], keys: KeyPair): Finding {
  if (proofs.length === 0) return good('no payoutd has used a key yet')
  const fault = keyFault(proofs, keys)
  return fault ? { state: 'wrong', ...fault } : good('the keys are those in use before')
}

export function checkAwaiting(awaiting: readonly AwaitingKey[]): Finding {
  if (awaiting.length === 0) return good('no payout waits for a key')
  const sentences = awaiting.map(
    ({ merchantId, keyId, count }) =>
      `${count} ${count === 1 ? 'payout' : 'payouts'} of merchant ${merchantId} ${count === 1 ? 'waits' : 'wait'} for key ${keyId}`,
  )
  return wrong(sentences.join('; '), 'add that key to ENCRYPTION_KEYS, and restart payoutd serve')
}
