import { fencedBeforeCancels, lockPayouts } from '../../ledger/ledger.ts'
import { shareLockForCancels } from '../../ledger/sql/cancels.ts'
import { isOfSomeRows } from '../../platform/postgres/faults.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { merchantOf, type ReadCommand } from './parse-command.ts'
import { takeTurns } from './sql/holds.ts'
import { backToMark, boundLockWaits, markApart } from './sql/waiting.ts'

/** As long as the transaction may last. */
const TURNS_MS = 0
/** Others wait for the turns of a transaction that waits for a lock. */
const LOCKS_MS = 300
/** How long to look for held locks, without a turn. Once so much was waited, the rest is looked at briefly. */
export const PATIENCE_MS = 1_000
const BRIEFLY_MS = 20

type Merchants = readonly (string | null)[]

const known = (merchants: Merchants): string[] => [
  ...new Set(merchants.filter((merchantId) => merchantId !== null)),
]

/**
 * Makes transactions of intake with commands of one merchant follow each other; call it before storing anything. It waits for
 * turns for as long as the transaction may last: with many merchants two transactions nearly always share some, and nobody is to be
 * told of it. From then on the transaction waits briefly for any lock, because others wait for its turns.
 */
export async function takeTurn(tx: Transaction, merchants: Merchants): Promise<void> {
  await waitForTurns(tx, merchants)
  await keepCancelsAway(tx, merchants, LOCKS_MS)
}

/** The turns alone. */
export async function waitForTurns(tx: Transaction, merchants: Merchants): Promise<void> {
  const merchantIds = known(merchants)
  if (merchantIds.length === 0) return
  await boundWaits(tx, TURNS_MS)
  await tx.run(takeTurns, { merchantIds })
}

/** While somebody cancels payouts of one of these merchants, it waits; from then on the transaction waits for `locksMs` for any lock. */
export async function keepCancelsAway(tx: Transaction, merchants: Merchants, locksMs: number): Promise<void> {
  await boundWaits(tx, locksMs)
  const merchantIds = known(merchants)
  if (merchantIds.length > 0) await tx.run(shareLockForCancels, { merchantIds })
}

const boundWaits = (tx: Transaction, ms: number) => tx.run(boundLockWaits, { ms: String(ms) })

/**
 * The merchants of these commands of which somebody keeps a usual lock for longer than a transaction with turns may wait, or of whom
 * a statement is cancelled. Holds
 * nothing that others could wait for: no turn, and one merchant's locks at a time. `patienceMs`: how long it may wait in all.
 */
export async function heldLocks(
  tx: Transaction,
  reads: readonly ReadCommand[],
  patienceMs = PATIENCE_MS,
): Promise<ReadonlySet<string>> {
  const held = new Set<string>()
  let left = patienceMs
  await tx.run(markApart, {})
  for (const [merchantId, theirs] of Map.groupBy(reads, merchantOf)) {
    if (merchantId === null) continue
    const began = performance.now()
    try {
      // Who keeps a lock for longer, as a cancellation in parts does, may take it again at once.
      await keepCancelsAway(tx, [merchantId], Math.max(BRIEFLY_MS, Math.min(LOCKS_MS, left)))
      await fencedBeforeCancels(tx, [merchantId])
      await lockPayouts(
        tx,
        theirs.flatMap(({ parsed }) => (parsed.kind === 'cancel' ? [parsed] : [])),
      )
    } catch (error) {
      if (!isOfSomeRows(error)) throw error
      held.add(merchantId)
    }
    left -= Math.ceil(performance.now() - began)
    await tx.run(backToMark, {})
  }
  return held
}
