import { recordAct } from '../ledger/acts.ts'
import type { Decided } from '../payout/resolve.ts'
import type { Database } from '../platform/postgres.ts'
import { putBack } from './sql/refused-messages.ts'

/**
 * Has the relay publish messages once more that Kafka refused, with who wanted it. Returns the positions of those that
 * were there.
 */
export function retryMessages(
  db: Database,
  { positions, by, reason }: Decided & { positions: readonly bigint[] },
): Promise<bigint[]> {
  return db.transaction('retry messages', async (tx) => {
    const again = await tx.run(putBack, { positions: [...positions] })
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
