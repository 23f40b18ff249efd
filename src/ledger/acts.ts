import { scrub, scrubName } from '../domain/mask.ts'
import { json } from '../messages/json.ts'
import type { Connection } from '../platform/postgres/postgres.ts'
import { whoami } from '../platform/whoami.ts'
import { insertAct } from './sql/acts.ts'

/** What a person did by a command. */
export type Act = {
  /** Who decides, and why, as the person says. */
  by: string
  reason: string
  /** The command without its arguments, such as `payout cancel`. */
  command: string
  /** Null: it is about no merchant. */
  merchantId: string | null
  /** What it was done to: ids of payouts, anomalies, orders, keys. */
  subjects: readonly string[]
  /** What the act changed, as it was and as it is now; null: nothing was there, or is there. No bank details. */
  before: object | null
  after: object | null
}

/**
 * Keeps an act with the user and the host of this process. To be called in the transaction that changes what the act
 * changes, so that neither is there without the other; and before whatever cannot be taken back, such as a call to
 * the gateway.
 */
export async function recordAct(connection: Connection, act: Act): Promise<void> {
  await connection.run(insertAct, {
    ...act,
    ...whoami(),
    by: scrubName(act.by),
    reason: scrub(act.reason),
    subjects: [...act.subjects],
    before: json(act.before),
    after: json(act.after),
  })
}
