import { setTimeout as delay } from 'node:timers/promises'
import type { World } from './world.ts'

const AT_FIRST = 39
/** On a busy machine a process may take its time to begin. */
const UP_WITHIN_MS = 120_000

/** Does it while payouts flow through one payoutd, which is started again whenever it gives up. */
export async function whilePayoutsFlow<Result>(world: World, make: () => Promise<Result>): Promise<Result> {
  await (await world.start()).up(UP_WITHIN_MS)
  await world.ask(AT_FIRST)
  const done = new AbortController()
  const supervised = supervise(world, done.signal)
  const [result] = await Promise.all([make(), trickle(world)]).finally(() => done.abort())
  await supervised
  return result
}

/** Makes the same trouble so many times, one after the other; returns how often. */
export async function many(times: number, each: (i: number) => Promise<void>): Promise<number> {
  for (let i = 0; i < times; i++) await each(i)
  return times
}

/** Starts payoutd again where it gave up, as whatever runs it would: at its start it does when something is missing. */
async function supervise(world: World, done: AbortSignal): Promise<void> {
  while (!done.aborted || world.procs.at(-1)?.isGone) {
    if (world.procs.at(-1)?.isGone) await world.start()
    await delay(300)
  }
}

/** More to do while things go wrong. */
async function trickle(world: World): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await delay(500)
    await world.ask(13)
  }
}
