import { words } from '../domain/mask.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { CANCELS_KEPT_DAYS, lockForCancels, rememberBatch } from '../ledger/sql/cancels.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { sizeOfBatch } from '../queries/sql/payouts/batch.ts'

/** How many payouts of a batch the ledger has, and as paid, and how many its files declared in all; null: no file declared a number. */
export type BatchSize = {
  batchId: string
  taken: bigint
  paid: bigint
  files: number
  declared: bigint | null
}

/**
 * From now on, intake cancels each payout of this batch as it arrives. The caller then finds those that the ledger already has,
 * and cancels them with `cancelPayouts`.
 */
export const cancelBatch = (
  { merchantId, batchId, by, reason }: Decided & { merchantId: string; batchId: string },
  ledger: Ledger,
): Promise<void> =>
  ledger.db.transaction('cancel batch', async (tx) => {
    // An intake transaction of the same moment has either committed its commands or sees this cancellation.
    await tx.run(lockForCancels, { merchantIds: [merchantId] })
    await tx.run(rememberBatch, { merchantId, batchId, why: words({ by, reason: `${reason} (the batch)` }) })
    const change = { subjects: [batchId], before: null, after: { cancelledForDays: CANCELS_KEPT_DAYS } }
    await recordAct(tx, { by, reason, command: 'payout cancel --batch', merchantId, ...change })
  })

export async function readBatchSize(merchantId: string, batchId: string, db: Database): Promise<BatchSize> {
  const [size] = await db.run(sizeOfBatch, { merchantId, batchId })
  if (!size) throw new Error('a statement that counts has one row')
  return { batchId, ...size }
}
