import { serverClock } from '../doctor/sql/server.ts'
import { accountIdsOf } from '../gateway/dialect/account.ts'
import { sweepKeptCallbacks } from '../ledger/callbacks/sql/kept-callbacks.ts'
import { CANCELS_KEPT_DAYS, sweepCancels } from '../ledger/sql/cancels.ts'
import { PAGE } from '../platform/postgres/pages.ts'
import { type Database, signing, sql } from '../platform/postgres/postgres.ts'
import type { Clock } from '../platform/running/clock.ts'
import { openByAccount } from '../queries/open-by-account.ts'
import { deleteOldLag } from '../stages/outcomes/sql/lag.ts'
import { UNREACHABLE_TODO, unreachableTexts } from '../views/gateway-settings-text.ts'
import type { Shared } from './shared.ts'

/**
 * Keeps the ledger at its size, unless one of two clocks is wrong: what it deletes is gone. Reports accounts that hold something
 * open but are missing from the settings.
 */
export function startHousekeeping({ config, ledger, lifecycle, clock, log }: Shared): void {
  lifecycle.loop('housekeeping', async (sign) => {
    const db = signing(sign, ledger.db)
    const apart = await clocksApart(db, clock)
    if (apart !== null) {
      log.warn({ apartMs: apart }, APART)
      return HOUSEKEEPING_SOON_MS
    }
    const [kept] = await db.write('keep history', keepHistory, { months: config.historyMonths })
    await db.write('forget lag', deleteOldLag, { limit: PAGE })
    const cancels = { days: CANCELS_KEPT_DAYS, limit: PAGE }
    const callbacks = { days: KEPT_CALLBACK_DAYS, limit: PAGE }
    const [cancelled] = await db.write('sweep early cancels', sweepCancels, cancels)
    const [dropped] = await db.write('sweep kept callbacks', sweepKeptCallbacks, callbacks)
    if (cancelled?.swept || dropped?.swept) return 0
    return kept?.left ? HOUSEKEEPING_SOON_MS : HOUSEKEEPING_EVERY_MS
  })
  const known = accountIdsOf(config.merchants)
  lifecycle.loop('open accounts', async (sign) => {
    for (const what of unreachableTexts(await openByAccount(signing(sign, ledger.db)), known))
      log.warn({ todo: UNREACHABLE_TODO }, what)
    return HOUSEKEEPING_EVERY_MS
  })
}

/** By how many ms the database's clock is ahead of this process's, if too far for either to be believed. */
async function clocksApart(db: Database, clock: Clock): Promise<number | null> {
  const [server] = await db.run(serverClock, {})
  const apart = server ? server.shown - clock.now() : 0
  return Math.abs(apart) > CLOCKS_AGREE_MS ? apart : null
}

/** What is deleted is days or months old. */
const CLOCKS_AGREE_MS = 12 * 3_600_000
const APART =
  "the database's clock and this machine's differ by hours: payoutd deletes nothing that is old until they agree"

export const HOUSEKEEPING_EVERY_MS = 3_600_000
/** If another transaction holds a lock, housekeeping tries again after this time. */
const HOUSEKEEPING_SOON_MS = 60_000
/** How long a callback waits for its merchant to return to the settings. */
const KEPT_CALLBACK_DAYS = 30
/** `left`: something could not be locked, or is still to be dropped. */
const keepHistory = sql<{ months: number | null }, { left: boolean }>`
  select keep_history(${'months'}::int) as left`
