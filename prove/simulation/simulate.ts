import fc from 'fast-check'
import { Broken, type Invariant } from './oracle.ts'
import type { Postgres } from './postgres.ts'
import { anyElement, type Element, take } from './steps.ts'
import { takeTimers } from './time.ts'
import { type Put, type Rules, type Tell, World } from './world.ts'

export type Failure = {
  seed: number
  invariant: Invariant
  detail: string
  /** What happened, a sentence each. */
  story: string[]
}

type Story = Rules & { elements: Element[] }

const MOST_ELEMENTS = 80

const stories: fc.Arbitrary<Story> = fc.record({
  // What a gateway that refuses them makes harmless must be seen too, but rarely.
  refusesDuplicates: fc.constantFrom(false, false, false, true),
  processes: fc.constantFrom(1, 2, 2, 3),
  elements: fc.array(anyElement, { minLength: MOST_ELEMENTS / 2, maxLength: MOST_ELEMENTS, size: 'max' }),
})

export const WHOLE: Put = () => ({})

/** Simulates the story of one seed. Returns how it broke, in its shortest form where `shrink` says so; null: it held. */
export async function simulate(
  seed: number,
  postgres: Postgres,
  { put = WHOLE, shrink = true }: { put?: Put; shrink?: boolean } = {},
): Promise<Failure | null> {
  takeTimers()
  const property = fc.asyncProperty(stories, (story) => play(story, put, postgres, null))
  const run = await fc.check(property, { seed, numRuns: 1, unbiased: true, endOnFailure: !shrink })
  if (!run.failed) return null
  if (!(run.errorInstance instanceof Broken)) throw run.errorInstance
  const [shortest] = run.counterexample as [Story]
  const { story, broken } = await retell(shortest, put, postgres)
  return { seed, invariant: broken.invariant, detail: broken.message, story }
}

/** What happens in the story of one seed, a sentence each. */
export async function trace(seed: number, postgres: Postgres): Promise<string[]> {
  takeTimers()
  const [story] = fc.sample(stories, { seed, numRuns: 1, unbiased: true }) as [Story]
  const told: string[] = []
  await play(story, WHOLE, postgres, (sentence) => told.push(sentence))
  return told
}

/** Throws `Broken`. */
async function play(story: Story, put: Put, postgres: Postgres, tell: Tell | null): Promise<void> {
  const world = await World.begin(story, put, postgres, tell)
  try {
    for (const element of story.elements) await take(element, world)
    await world.rest()
  } catch (error) {
    if (error instanceof Broken) throw error
    throw new Broken(
      'nothing is thrown',
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    )
  } finally {
    world.end()
  }
}

async function retell(
  story: Story,
  put: Put,
  postgres: Postgres,
): Promise<{ story: string[]; broken: Broken }> {
  const { refusesDuplicates, processes } = story
  const told = [
    `A gateway that ${refusesDuplicates ? 'refuses' : 'pays'} a second apply under one number; processes: ${processes}.`,
  ]
  try {
    await play(story, put, postgres, (sentence) => told.push(sentence))
  } catch (error) {
    if (error instanceof Broken) return { story: told, broken: error }
    throw error
  }
  throw new Error('the same events did not lead to the same end')
}
