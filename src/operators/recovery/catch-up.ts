import { type Backlog, intakeBacklog } from '../../ledger/intake-backlog.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { pause } from '../../platform/running/lifecycle.ts'

export type CatchUpDeps = {
  db: Database
  clock: Clock
  signal: AbortSignal
  /** How many messages intake has yet to store. */
  onBehind: (behind: bigint) => void
}

/** `stuck`: intake stored nothing for a minute. */
export type CaughtUp = { kind: 'caught-up' | 'interrupted' } | { kind: 'stuck'; behind: bigint }

const STUCK_MS = 60_000
const LOOK_EVERY_MS = 500

/** Waits until intake, which runs in other processes, has stored everything that the commands topic held of these merchants. */
export async function untilCaughtUp(
  backlog: Backlog,
  { db, clock, signal, onBehind }: CatchUpDeps,
): Promise<CaughtUp> {
  let before: bigint | undefined
  let movedAt = clock.monotonic()
  while (!signal.aborted) {
    const behind = await intakeBacklog(backlog, db)
    if (behind === 0n) return { kind: 'caught-up' }
    if (behind !== before) {
      onBehind(behind)
      movedAt = clock.monotonic()
    }
    if (clock.monotonic() - movedAt > STUCK_MS) return { kind: 'stuck', behind }
    before = behind
    await pause(LOOK_EVERY_MS, signal)
  }
  return { kind: 'interrupted' }
}
