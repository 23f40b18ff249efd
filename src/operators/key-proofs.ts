import { createHmac, type KeyObject } from 'node:crypto'
import { type DependencyFault, inOneLine } from '../platform/dependency-fault.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { opens, type SealingKeys, seal } from '../platform/seal.ts'
import { type KeyProof, keepProofs, storedProofs } from './sql/key-proofs.ts'

export type KeyPair = { sealing: SealingKeys; fingerprint: KeyObject }

/** No encryption key has this id. */
const FINGERPRINT = 0
const CONTEXT = 'key proof'

/**
 * Call this before using the keys. Stores a proof of FINGERPRINT_KEY, and of the encryption key that seals, if there is none yet.
 * Throws an ExpectedFailure, and stores nothing, if the keys are not those that were in use before.
 */
export async function proveKeys(db: Database, keys: KeyPair): Promise<void> {
  await db.transaction('prove keys', async (tx) => {
    await tx.run(keepProofs, {
      proofs: [
        { keyId: FINGERPRINT, proof: fingerprintProof(keys.fingerprint) },
        { keyId: keys.sealing.current, proof: seal(Buffer.alloc(0), CONTEXT, keys.sealing) },
      ],
    })
    const fault = keyFault(await tx.run(storedProofs, {}), keys)
    if (fault) throw new ExpectedFailure(inOneLine(fault))
  })
}

/**
 * What is wrong with the keys, compared with those that left `proofs`; null: they are the same, or new under an id of their own.
 */
export function keyFault(proofs: readonly KeyProof[], keys: KeyPair): DependencyFault | null {
  for (const { keyId, proof } of proofs) {
    if (keyId === FINGERPRINT) {
      if (proof.equals(fingerprintProof(keys.fingerprint))) continue
      return {
        what: 'FINGERPRINT_KEY is not the key with which payoutd accepted payouts, so it would take every repeated command for one with other content',
        todo: 'put the former FINGERPRINT_KEY back, and never change it',
      }
    }
    if (!keys.sealing.keys.has(keyId)) {
      return {
        what: `encryption key ${keyId} was used, but is not in ENCRYPTION_KEYS`,
        todo: `add key ${keyId} again; payoutd encrypts new data with the key that has the highest id`,
      }
    }
    if (!opens(proof, CONTEXT, keys.sealing)) {
      return {
        what: `key ${keyId} in ENCRYPTION_KEYS does not decrypt what was encrypted with key ${keyId}`,
        todo: `put the former key back as ${keyId}, and give a new key a higher id`,
      }
    }
  }
  return null
}

const fingerprintProof = (key: KeyObject): Buffer => createHmac('sha256', key).update(CONTEXT).digest()
