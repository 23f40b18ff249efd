import type { Decided } from '../domain/payout/resolve.ts'
import { recordAct } from '../ledger/acts.ts'
import { PAGE } from '../platform/postgres/pages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { inBatches } from './in-batches.ts'
import { putBack, refusedBehind } from './sql/retry-messages.ts'

/** The positions of all messages that Kafka refused, the oldest first. */
export async function allRefused(db: Database): Promise<bigint[]> {
  const all: bigint[] = []
  for (;;) {
    const page = await db.run(refusedBehind, { after: all.at(-1) ?? 0n, limit: PAGE })
    all.push(...page.map(({ position }) => position))
    if (page.length < PAGE) return all
  }
}

/**
 * Makes the relay publish refused messages again, a page at a time, and records who asked for each page. Returns the positions of
 * those that existed.
 */
export const retryMessages = (
  db: Database,
  { positions, by, reason }: Decided & { positions: readonly bigint[] },
): Promise<bigint[]> => inBatches(positions, (some) => retrySome(db, { positions: some, by, reason }))

function retrySome(
  db: Database,
  { positions, by, reason }: Decided & { positions: bigint[] },
): Promise<bigint[]> {
  return db.transaction('retry messages', async (tx) => {
    const again = await tx.run(putBack, { positions })
    if (again.length > 0) {
      const subjects = again.map(({ position, eventId }) => `${position} ${eventId}`)
      await recordAct(tx, {
        ...{ by, reason, command: 'outbox retry', merchantId: null, subjects },
        ...{ before: null, after: null },
      })
    }
    return again.map(({ position }) => position)
  })
}
