import type { Logger } from '../platform/log.ts'
import type { Connection } from '../platform/postgres/postgres.ts'
import { BY_PAYOUTD } from './evidence/proven-losses.ts'
import {
  fenceAll,
  fenceUnknown,
  hasLedger,
  notedServer,
  noteServer,
  type ServerIdentity,
  serverIdentity,
} from './sql/server-identity.ts'

/**
 * Checks every new connection before anything else may use it. A server may lack commits if its history differs from that of
 * the server noted in the ledger, or is earlier than one that this process has seen. Then every merchant is fenced first, so
 * that no process sends anything until `payoutd recover` has asked the gateway about what is open.
 */
export function watchServer(
  merchantIds: readonly string[],
  log: Logger,
): (connection: Connection) => Promise<void> {
  let seen: ServerIdentity | null = null
  return async (connection) => {
    const [ledger] = await connection.run(hasLedger, {})
    const [now] = await connection.run(serverIdentity, {})
    if (!now || !ledger?.present) return
    const [noted] = await connection.run(notedServer, {})
    if (!noted) await connection.run(noteServer, now)
    const whose = { merchantIds: [...merchantIds], by: BY_PAYOUTD }
    const before = changedSince(noted ?? null, seen, now)
    if (before) {
      const change = { reason: changeInWords(before, now), oneStep: isOneStep(before, now) }
      await connection.run(fenceAll, { ...now, ...whose, ...change })
      log.error({ reason: change.reason }, ALL_FENCED)
    } else if (seen && !isSame(seen, now)) {
      // The process that noted the server has fenced the merchants of the ledger and of its own settings.
      const change = { reason: changeInWords(seen, now), oneStep: isOneStep(seen, now) }
      await connection.run(fenceUnknown, { ...whose, ...change })
    }
    seen = now
  }
}

const ALL_FENCED =
  'payoutd has fenced every merchant and sends nothing: the database may lack commits. If DATABASE_URL names the wrong database, ' +
  'correct it. Otherwise make sure that nothing uses the former server or database any more, and run payoutd recover; if a standby ' +
  'that took over has every commit of the former server, run payoutd recover --nothing-lost'

export const isSame = (one: ServerIdentity, other: ServerIdentity): boolean =>
  isSameDatabase(one, other) && one.timeline === other.timeline

const isSameDatabase = (one: ServerIdentity, other: ServerIdentity): boolean =>
  one.systemIdentifier === other.systemIdentifier && one.databaseOid === other.databaseOid

/** Exactly one failover, which an operator can know about. If there were more, payoutd did not see what each lost. */
export const isOneStep = (before: ServerIdentity, now: ServerIdentity): boolean =>
  isSameDatabase(before, now) && now.timeline === before.timeline + 1n

/**
 * The server since which commits may be lost; null: nothing suggests a loss. `noted`: the server in the ledger itself; `seen`:
 * the one that this process was last connected to.
 */
export function changedSince(
  noted: ServerIdentity | null,
  seen: ServerIdentity | null,
  now: ServerIdentity,
): ServerIdentity | null {
  if (seen && wentBack(seen, now)) return seen
  return noted && !isSame(noted, now) ? noted : null
}

/**
 * A former primary, or the database from before its copy (whose OID is lower), is back without later commits. Its own ledger cannot
 * show that.
 */
const wentBack = (before: ServerIdentity, now: ServerIdentity): boolean =>
  before.systemIdentifier === now.systemIdentifier &&
  (now.timeline < before.timeline || now.databaseOid < before.databaseOid)

export function changeInWords(before: ServerIdentity, now: ServerIdentity): string {
  if (before.systemIdentifier !== now.systemIdentifier)
    return `the database belongs to another cluster (${now.systemIdentifier}) than before (${before.systemIdentifier})`
  if (before.databaseOid !== now.databaseOid)
    return `the database is a copy of another one of this server, or a dump loaded there (OID ${before.databaseOid}, now ${now.databaseOid})`
  return `the database moved from timeline ${before.timeline} to ${now.timeline}: another server took over, or somebody restored a backup`
}
