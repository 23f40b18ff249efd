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
  /** Where callbacks are received; null without the role outcomes. */
  readonly publicUrl: string | null
  /** Health and metrics. */
  readonly internalUrl: string
  /** Finishes what is in hand and stops, within 25 s. */
  stop(): Promise<void>
  /** Resolves with what stands still once something has not got on with its work for minutes: the process should end. */
  readonly standstill: Promise<Standstill>
  /** The parts that `stop` could not finish; empty: all of it ended. */
  readonly unfinished: readonly string[]
  /** For who cannot wait any longer: tells in the log which payouts are left to their leases. */
  logAbandoned(): void
}

/** A loop, and for how long it has given no sign of life. */
export type Standstill = { loop: string; ms: number }

/** Of who never stops a start. */
const UNSTOPPED = new AbortController().signal

/**
 * Starts one payoutd process with the given roles and resolves when all of them work. Rejects, with
 * everything stopped again, when something it needs is missing or refuses (a schema that is not
 * registered, topics that are missing, a database without tables, other keys than those in use before, a port that is taken),
 * and with the reason of `stopping` once that is aborted.
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
    // In the order of stopping, backwards: what takes work in stops first, the callback endpoints last.
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

/** Longer than any turn of a loop takes: each of its statements, requests and publishes is given up far earlier. */
const STANDSTILL_MS = 120_000

function watchHeartbeats(lifecycle: Lifecycle): Promise<Standstill> {
  return new Promise((resolve) => {
    const watch = setInterval(() => {
      for (const [loop, ms] of lifecycle.heartbeats.silences()) if (ms > STANDSTILL_MS) resolve({ loop, ms })
    }, 1_000)
    lifecycle.own('watch over loops', async () => clearInterval(watch))
  })
}
