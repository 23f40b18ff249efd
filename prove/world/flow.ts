import { setTimeout as delay } from 'node:timers/promises'
import type { World } from './world.ts'

const AT_FIRST = 39
/** On a busy machine a process may take long to start. */
export const UP_WITHIN_MS = 120_000

/** Does it while payouts flow through one payoutd, which is restarted whenever it gives up. */
export async function whilePayoutsFlow<Result>(world: World, make: () => Promise<Result>): Promise<Result> {
  await (await world.start()).up(UP_WITHIN_MS)
  await world.ask(AT_FIRST)
  const over = new AbortController()
  const [result] = await Promise.all([
    make().finally(() => over.abort()),
    trickle(world, over.signal),
    supervise(world, over.signal),
  ])
  return result
}

/** Adds payouts while things go wrong, fewer the longer it takes. */
async function trickle(world: World, over: AbortSignal): Promise<void> {
  for (let i = 0; i < 6 || !over.aborted; i++) {
    await delay(i < 6 ? 500 : 5_000)
    await world.ask(13)
  }
}

/** Makes the same fault this many times, one after the other; returns how often. */
export async function many(times: number, each: (i: number) => Promise<void>): Promise<number> {
  for (let i = 0; i < times; i++) await each(i)
  return times
}

/**
 * Restarts payoutd when it gives up, as a supervisor would: it does at its start if a dependency is missing. The
 * last victim may end a moment later, so in the end one process must be up.
 */
async function supervise(world: World, over: AbortSignal): Promise<void> {
  for (;;) {
    const isOver = over.aborted
    const last = world.procs.at(-1)
    if (last?.isGone) await world.start()
    else if (isOver && (await last?.up(UP_WITHIN_MS))) return
    await delay(300)
  }
}
