import type { Database } from '../platform/postgres.ts'
import type { CallbackKind } from './sql/kept-callbacks.ts'
import { forgetLostCallback, type LostCallback, takeLostCallbacks } from './sql/lost-callbacks.ts'

/** Until an order is asked about again of which the gateway told nothing, or whose account is not in the settings. */
const AGAIN_MS = 600_000

/** How long to wait, in ms, after a turn that found some, and after one that found none. */
export const LOST_SOON_MS = 1_000
export const LOST_EVERY_MS = 60_000

/**
 * Orders of which a callback was lost while their merchant was not in the settings, as many of each merchant as it has room
 * for. No other turn takes them for ten minutes.
 */
export const takeLost = (
  kind: CallbackKind,
  rooms: ReadonlyMap<string, number>,
  db: Database,
): Promise<LostCallback[]> =>
  db.write('take lost callbacks', takeLostCallbacks, {
    kind,
    merchantIds: [...rooms.keys()],
    limits: [...rooms.values()],
    againMs: AGAIN_MS,
  })

/** Once the gateway has told what it knows of the order; it stays if another callback was lost meanwhile. */
export async function forgetLost(kind: CallbackKind, lost: LostCallback, db: Database): Promise<void> {
  const { merchantId, orderNo, again } = lost
  await db.write('forget lost callback', forgetLostCallback, { kind, merchantId, orderNo, again })
}
