import type { Logger } from '../platform/log.ts'
import type { Connection } from '../platform/postgres/postgres.ts'
import { BY_PAYOUTD } from './evidence/store-evidence.ts'
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
 * Looks at every new connection before anything else may use it: a server with another history than the ledger was last
 * worked with on, or with an earlier one than this process has seen, may lack what was committed there. Then every merchant is fenced first,
 * so that nothing is sent, by whatever process, until `payoutd recover` has asked the gateway about what is open.
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
      // Whoever noted the server fenced those that the ledger and its own settings have.
      const change = { reason: changeInWords(seen, now), oneStep: isOneStep(seen, now) }
      await connection.run(fenceUnknown, { ...whose, ...change })
    }
    seen = now
  }
}

const ALL_FENCED =
  'payoutd has fenced every merchant and sends nothing: the database may have lost its last commits. Make sure that the former ' +
  'server is stopped, and run payoutd recover; if the new server has every commit of the former one, run payoutd recover --nothing-lost'

export const isSame = (one: ServerIdentity, other: ServerIdentity): boolean =>
  one.systemIdentifier === other.systemIdentifier && one.timeline === other.timeline

/**
 * One failover, which a person can know. Beyond that there were others, of which nobody of payoutd saw what they lost.
 */
export const isOneStep = (before: ServerIdentity, now: ServerIdentity): boolean =>
  before.systemIdentifier === now.systemIdentifier && now.timeline === before.timeline + 1n

/**
 * The server since which what was committed may be lost; null: nothing speaks for that. `noted`: what the ledger itself was
 * last worked with on; `seen`: what this process was last connected to.
 */
export function changedSince(
  noted: ServerIdentity | null,
  seen: ServerIdentity | null,
  now: ServerIdentity,
): ServerIdentity | null {
  if (seen && wentBack(seen, now)) return seen
  return noted && !isSame(noted, now) ? noted : null
}

/** A former primary is back, without what was committed since. Its own ledger cannot tell. */
const wentBack = (before: ServerIdentity, now: ServerIdentity): boolean =>
  before.systemIdentifier === now.systemIdentifier && now.timeline < before.timeline

export const changeInWords = (before: ServerIdentity, now: ServerIdentity): string =>
  before.systemIdentifier === now.systemIdentifier
    ? `the database went over from timeline ${before.timeline} to ${now.timeline}: another server took over, or a backup was restored`
    : `the database is another cluster (${now.systemIdentifier}) than before (${before.systemIdentifier})`
