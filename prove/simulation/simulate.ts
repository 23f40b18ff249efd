import fc from 'fast-check'
import { systemClock } from '../../src/platform/running/clock.ts'
import { Broken, type Invariant } from './oracle.ts'
import type { Postgres } from './postgres.ts'
import { anyElement, type Element, type Kind, OPTIONAL, take } from './steps.ts'
import { takeTimers } from './time.ts'
import { type Put, type Rules, SimulatedWorld } from './world.ts'

export type Failure = {
  seed: number
  invariant: Invariant
  detail: string
  /** The events, one sentence each. */
  story: string[]
}

/** `without`: the kinds of event left out, so that the story is more about the rest. */
type SimulatedStory = Rules & { without: Kind[]; elements: Element[] }

const MOST_ELEMENTS = 80
/** After this time, shows the shortest story found. */
const SHRINKS_FOR_MS = 30_000
/** A step takes a millisecond, or a second on a busy machine. */
const STUCK_AFTER_MS = 60_000

const stories: fc.Arbitrary<SimulatedStory> = fc.record({
  // Stories that a gateway which refuses duplicates makes harmless must occur too, but rarely.
  refusesDuplicates: fc.constantFrom(false, false, false, true),
  processes: fc.constantFrom(1, 2, 2, 3),
  hasPaid: fc.constantFrom(true, true, true, false),
  isForgetful: fc.boolean(),
  without: fc.subarray([...OPTIONAL]),
  elements: fc.array(anyElement, { minLength: MOST_ELEMENTS / 2, maxLength: MOST_ELEMENTS, size: 'max' }),
})

export const WHOLE: Put = () => ({})

/**
 * The result of a story, as first played. `steps`: how many events, one after the other. `orders`: how many reached
 * the gateway.
 */
export type Simulated = { failure: Failure | null; steps: number; payouts: number; orders: number }

/**
 * Simulates the story of one seed. With `shrink` it reduces a failure to its shortest form. Rejects if the story
 * waits for ever: nothing can be simulated after it, as the database may be in use.
 */
export async function simulate(
  seed: number,
  postgres: Postgres,
  { put = WHOLE, shrink = true }: { put?: Put; shrink?: boolean } = {},
): Promise<Simulated> {
  takeTimers()
  let first: SimulatedWorld | undefined
  let ordersBefore = 0
  let failure: Failure | null = null
  let until = Number.POSITIVE_INFINITY
  const property = fc.asyncProperty(stories, async (story) => {
    if (systemClock.monotonic() > until) return
    const world = await SimulatedWorld.begin(story, put, postgres)
    if (!first) ordersBefore = world.gateway.orders.length
    first ??= world
    const broken = await play(story, world).catch((error: unknown) => {
      until = 0
      throw error
    })
    // A story that breaks in another way is another story.
    if (broken === null || (failure !== null && broken.invariant !== failure.invariant)) return
    until = Math.min(until, systemClock.monotonic() + SHRINKS_FOR_MS)
    // A later failing story is shorter.
    failure = { seed, invariant: broken.invariant, detail: broken.message, story: toldOf(story, world) }
    throw broken
  })
  const run = await fc.check(property, { seed, numRuns: 1, unbiased: true, endOnFailure: !shrink })
  if (run.failed && !(run.errorInstance instanceof Broken)) {
    throw new Error(`seed ${seed} cannot be simulated`, { cause: run.errorInstance })
  }
  return {
    failure,
    steps: first?.acts ?? 0,
    payouts: first?.commands.length ?? 0,
    orders: (first?.gateway.orders.length ?? 0) - ordersBefore,
  }
}

/** The events of one seed's story, one sentence each. */
export async function trace(seed: number, postgres: Postgres): Promise<readonly string[]> {
  takeTimers()
  const [story] = fc.sample(stories, { seed, numRuns: 1, unbiased: true }) as [SimulatedStory]
  const world = await SimulatedWorld.begin(story, WHOLE, postgres)
  await play(story, world)
  return world.told
}

/** The invariant that the story breaks; null: none. */
async function play(story: SimulatedStory, world: SimulatedWorld): Promise<Broken | null> {
  let acts = -1
  let watch: NodeJS.Timeout | undefined
  const stuck = new Promise<never>((_, reject) => {
    watch = setInterval(() => {
      if (world.acts === acts)
        reject(new Error(['nothing happens any more behind this:', ...toldOf(story, world)].join('\n')))
      acts = world.acts
    }, STUCK_AFTER_MS)
  })
  const played = playAll(story, world).catch((error: unknown) => {
    if (error instanceof Broken) return error
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return new Broken('nothing is thrown', reason)
  })
  try {
    return await Promise.race([played, stuck])
  } finally {
    clearInterval(watch)
    world.end()
  }
}

async function playAll(story: SimulatedStory, world: SimulatedWorld): Promise<null> {
  for (const element of story.elements) if (!story.without.includes(element.kind)) await take(element, world)
  await world.rest()
  return null
}

function toldOf({ refusesDuplicates, processes }: SimulatedStory, { told }: SimulatedWorld): string[] {
  const does = refusesDuplicates ? 'refuses' : 'pays'
  return [`A gateway that ${does} a second apply under one number; processes: ${processes}.`, ...told]
}
