import type { KeyObject } from 'node:crypto'
import { openDetails, type PayoutDetails } from '../../ledger/details.ts'
import { fingerprint } from '../../payout/identifiers.ts'
import type { Database } from '../../platform/postgres.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'
import { type SealedSample, sealedSample } from './sql/sealed-sample.ts'

export type Keys = { sealing: SealingKeys; fingerprint: KeyObject }

export const keyChecks = (db: Database, keys: Keys): Check[] => [
  {
    name: 'keys',
    needs: 'migrations',
    run: async () => judgeKeys(await db.run(sealedSample, {}), keys),
  },
]

/** Whether the keys open what is stored, one payout for each key id, and fingerprint it as before. */
export function judgeKeys(samples: readonly SealedSample[], keys: Keys): Finding {
  if (samples.length === 0) return good('nothing is stored yet that they would have to open')
  for (const sample of samples) {
    const { keyId } = sample
    if (!keys.sealing.keys.has(keyId)) {
      return wrong(
        `bank details are sealed with key ${keyId}, which is not in ENCRYPTION_KEYS`,
        `add key ${keyId} again; new payouts are sealed with the highest id`,
      )
    }
    const details = open(sample, keys.sealing)
    if (!details) {
      return wrong(
        `key ${keyId} in ENCRYPTION_KEYS does not open what was sealed with key ${keyId}`,
        `put the former key back under ${keyId}, and give a new one a higher id`,
      )
    }
    // A rejected command may have had any bank code, which is not kept.
    if (sample.state !== 'rejected' && !isSame(sample, details, keys.fingerprint)) {
      return wrong(
        'FINGERPRINT_KEY is not the one under which payouts were taken in: every repeat of a command would be taken for other content',
        'put the former FINGERPRINT_KEY back; it is never rotated',
      )
    }
  }
  const ids = samples.map(({ keyId }) => keyId).join(', ')
  return good(`what is stored opens (key ids in use: ${ids}), and fingerprints agree`)
}

function open(sample: SealedSample, keys: SealingKeys): PayoutDetails | null {
  try {
    return openDetails(sample, sample.sealed, keys)
  } catch (error) {
    // AES-GCM says no more than that; anything else is a mistake of ours.
    if (error instanceof Error && error.message.includes('authenticate data')) return null
    throw error
  }
}

/** The fingerprint takes no other field than these (`payout/identifiers.ts`). */
function isSame(
  { amount, currency, ...sample }: SealedSample,
  details: PayoutDetails,
  key: KeyObject,
): boolean {
  const command = {
    ...details,
    payoutId: sample.payoutId,
    merchantId: sample.merchantId,
    amount,
    currency,
    bankCode: 'BANK',
    batchId: null,
    rowNumber: null,
    priority: 0,
    notBefore: null,
    deadline: null,
  }
  return fingerprint(command, key).equals(sample.fingerprint)
}
