import { scrub, scrubName } from '../domain/mask.ts'
import { json } from '../messages/json.ts'
import type { Connection } from '../platform/postgres/postgres.ts'
import { whoami } from '../platform/whoami.ts'
import { insertAct } from './sql/acts.ts'

/** What an operator did by a command. */
export type Act = {
  /** Who decides, and why, as the operator states it. */
  by: string
  reason: string
  /** The command without its arguments, such as `payout cancel`. */
  command: string
  /** Null: the act is about no merchant. */
  merchantId: string | null
  /** What the act changed: ids of payouts, anomalies, orders, keys. */
  subjects: readonly string[]
  /** The subjects before and after the act; null: there was nothing, or is nothing now. Without bank details. */
  before: object | null
  after: object | null
}

/**
 * Stores an act with the user and the host of this process. Call it in the transaction that makes the change, so that
 * neither exists without the other, and before any step that cannot be undone, such as a call to the gateway.
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
