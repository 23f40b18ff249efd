import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from 'node:crypto'

/** Keys by id (1 to 255). New text is sealed with `current`; the others still open what they sealed. */
export type SealingKeys = { current: number; keys: ReadonlyMap<number, KeyObject> }

const IV = 12
const TAG = 16
const HEADER = 1 + IV + TAG

/** Draws random bytes 4 KB at a time: one call per seal cost more than the cipher. */
const pool = Buffer.alloc(4096)
let drawn = pool.length
function nonce(): Buffer {
  if (drawn + IV > pool.length) {
    randomFillSync(pool)
    drawn = 0
  }
  drawn += IV
  return Buffer.from(pool.subarray(drawn - IV, drawn))
}

/**
 * AES-256-GCM: key id, nonce, tag, ciphertext. `context` is bound to it: data sealed for one row does not open for
 * another.
 */
export function seal(plain: Buffer, context: string, { current, keys }: SealingKeys): Buffer {
  const iv = nonce()
  const cipher = createCipheriv('aes-256-gcm', keys.get(current) as KeyObject, iv)
  cipher.setAAD(Buffer.from(context))
  const body = cipher.update(plain)
  cipher.final()
  return Buffer.concat([Buffer.of(current), iv, cipher.getAuthTag(), body])
}

/** Sealed data does not open. `keyId` names the key that sealed it. */
export class DoesNotOpen extends Error {
  readonly keyId: number

  constructor(keyId: number, why: string, options?: ErrorOptions) {
    super(why, options)
    this.keyId = keyId
  }
}

/** Throws DoesNotOpen if the key is unknown or wrong, the bytes were changed, or the context differs. */
export function unseal(sealed: Buffer, context: string, { keys }: SealingKeys): Buffer {
  const keyId = sealed[0] ?? 0
  const key = keys.get(keyId)
  if (!key) throw new DoesNotOpen(keyId, `there is no encryption key with id ${keyId}`)
  try {
    const cipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + IV))
    cipher.setAAD(Buffer.from(context))
    cipher.setAuthTag(sealed.subarray(1 + IV, HEADER))
    return Buffer.concat([cipher.update(sealed.subarray(HEADER)), cipher.final()])
  } catch (cause) {
    throw new DoesNotOpen(keyId, `encryption key ${keyId} does not open it`, { cause })
  }
}

/** Whether `unseal` would open it. */
export function opens(sealed: Buffer, context: string, keys: SealingKeys): boolean {
  try {
    unseal(sealed, context, keys)
    return true
  } catch (error) {
    if (error instanceof DoesNotOpen) return false
    throw error
  }
}

/** The same text, sealed with the current key. Throws DoesNotOpen as `unseal` does. */
export const reseal = (sealed: Buffer, context: string, keys: SealingKeys): Buffer =>
  seal(unseal(sealed, context, keys), context, keys)
