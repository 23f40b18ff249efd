import { fencedBeforeCancels, lockPayouts } from '../../ledger/ledger.ts'
import { shareLockForCancels } from '../../ledger/sql/cancels.ts'
import { isLocked, type Transaction } from '../../platform/postgres/postgres.ts'
import { merchantOf, type ReadCommand } from './parse-command.ts'
import { takeTurns } from './sql/holds.ts'
import { backToMark, boundLockWaits, markApart } from './sql/waiting.ts'

/** As long as the transaction may last. */
const TURNS_MS = '0'
/** Others wait for the turns of a transaction that waits for a lock. */
const LOCKS_MS = 300
/** Longer than any of payoutd's transactions keeps a merchant's rows locked. Once so much was waited, the rest is looked at briefly. */
const PATIENCE_MS = 1_000
const BRIEFLY_MS = 20

/**
 * Makes transactions of intake with commands of one merchant follow each other; call it before storing anything. It waits for
 * turns for as long as the transaction may last: with many merchants two transactions nearly always share some, and nobody is to be
 * told of it. From then on it waits briefly for any lock, because others wait for its turns.
 */
export async function takeTurn(tx: Transaction, merchants: readonly (string | null)[]): Promise<void> {
  const merchantIds = [...new Set(merchants)].filter((merchantId) => merchantId !== null)
  if (merchantIds.length > 0) {
    await tx.run(boundLockWaits, { ms: TURNS_MS })
    await tx.run(takeTurns, { merchantIds })
  }
  await tx.run(boundLockWaits, { ms: String(LOCKS_MS) })
  if (merchantIds.length > 0) await tx.run(shareLockForCancels, { merchantIds })
}

/**
 * The merchants of these commands of which somebody keeps a lock that storing them needs, each with the error. Holds nothing that
 * others could wait for: no turn, and one merchant's locks at a time.
 */
export async function heldLocks(
  tx: Transaction,
  reads: readonly ReadCommand[],
): Promise<ReadonlyMap<string, unknown>> {
  const held = new Map<string, unknown>()
  let left = PATIENCE_MS
  await tx.run(markApart, {})
  for (const [merchantId, theirs] of Map.groupBy(reads, merchantOf)) {
    if (merchantId === null) continue
    await tx.run(boundLockWaits, { ms: String(Math.max(BRIEFLY_MS, left)) })
    const began = performance.now()
    try {
      await tx.run(shareLockForCancels, { merchantIds: [merchantId] })
      await fencedBeforeCancels(tx, [merchantId])
      await lockPayouts(
        tx,
        theirs.flatMap(({ parsed }) => (parsed.kind === 'cancel' ? [parsed] : [])),
      )
    } catch (error) {
      if (!isLocked(error)) throw error
      held.set(merchantId, error)
    }
    left -= Math.ceil(performance.now() - began)
    await tx.run(backToMark, {})
  }
  return held
}
