import type { Config } from '../config/config.ts'
import type { Logger } from '../platform/log.ts'
import { Lifecycle } from '../platform/running/lifecycle.ts'
import { SAFEGUARDS, type Safeguards } from './safeguards.ts'
import { share, urlOf } from './shared.ts'
import { startDispatch } from './start-dispatch.ts'
import { startHousekeeping } from './start-housekeeping.ts'
import { startIntake } from './start-intake.ts'
import { serveInternally, serveWhileStarting } from './start-internal-server.ts'
import { startOutcomes } from './start-outcomes.ts'
import { startRelay } from './start-relay.ts'
import { requireTopics } from './topics.ts'

export const ROLES = ['intake', 'dispatch', 'outcomes', 'relay'] as const
export type Role = (typeof ROLES)[number]

export interface Payoutd {
  /** Where this process receives callbacks; null without the role outcomes. */
  readonly publicUrl: string | null
  /** Health and metrics. */
  readonly internalUrl: string
  /** Finishes work in progress and stops, within 25 s. */
  stop(): Promise<void>
  /** Resolves with the part that stands still once a part has made no progress for minutes: the process should end. */
  readonly standstill: Promise<Standstill>
  /** The parts that `stop` could not finish; empty if all of them ended. */
  readonly unfinished: readonly string[]
  /** For a caller that cannot wait any longer: logs which payouts stay under their leases. */
  logAbandoned(): void
}

/** A loop, and how long it has given no sign of life. */
export type Standstill = { loop: string; ms: number }

/** For a start that nothing aborts. */
const UNSTOPPED = new AbortController().signal

/**
 * Starts one payoutd process with the given roles and resolves when all of them work. If it lacks something it
 * needs, or a dependency refuses (an unregistered schema, missing topics, a database without tables, other keys
 * than those used before, a port in use), it stops everything again and rejects. If `stopping` is aborted, it
 * rejects with the reason.
 */
export async function startPayoutd(
  config: Config,
  roles: ReadonlySet<Role>,
  log: Logger,
  safeguards: Safeguards = SAFEGUARDS,
  stopping: AbortSignal = UNSTOPPED,
): Promise<Payoutd> {
  const lifecycle = new Lifecycle(log)
  try {
    const starting = await serveWhileStarting(config, lifecycle)
    if (roles.has('intake') || roles.has('relay')) await requireTopics(config, log)
    const shared = await share(config, safeguards, lifecycle, log, stopping)
    startHousekeeping(shared)
    // The lifecycle stops parts in reverse order: the parts that accept work stop first, the callback endpoints last.
    const standstill = watchHeartbeats(lifecycle)
    const publicUrl = roles.has('outcomes') ? await startOutcomes(shared) : null
    const notifyAt = config.publicUrl ?? publicUrl ?? urlOf(config.publicAt)
    if (roles.has('relay')) startRelay(shared)
    let isUp = false
    await starting.close()
    const internalUrl = await serveInternally(shared, notifyAt, () => isUp)
    const applies = roles.has('dispatch') ? await startDispatch(shared, notifyAt) : null
    stopping.throwIfAborted()
    if (roles.has('intake')) startIntake(shared)
    isUp = true
    log.info(
      { roles: [...roles], internalUrl, publicUrl, merchants: [...config.merchants.keys()] },
      'payoutd is up',
    )
    return {
      publicUrl,
      internalUrl,
      standstill,
      stop: () => lifecycle.stop(),
      unfinished: lifecycle.unfinished,
      logAbandoned: () => applies?.logAbandoned(),
    }
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}

/** Longer than any turn of a loop: each of its statements, requests and publishes times out far earlier. */
const STANDSTILL_MS = 120_000

function watchHeartbeats(lifecycle: Lifecycle): Promise<Standstill> {
  return new Promise((resolve) => {
    const watch = setInterval(() => {
      for (const [loop, ms] of lifecycle.heartbeats.silences()) if (ms > STANDSTILL_MS) resolve({ loop, ms })
    }, 1_000)
    lifecycle.own('watch over loops', async () => clearInterval(watch))
  })
}
