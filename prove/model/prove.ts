import fc from 'fast-check'
import { Broken, type Invariant } from './oracle.ts'
import type { Parts } from './parts.ts'
import { anyStep, type Step, take } from './steps.ts'
import { type Beginning, type Tell, World } from './world.ts'

export type Options = {
  parts: Parts
  /** How many simulations. */
  seeds: number
  /** Where all the others come from; without it, another one each time. */
  seed?: number
  /** Of one simulation among those of `seed`, to run it alone. */
  path?: string
  /** Whether a story is to be made as short as it can be, which takes a while. */
  shrink: boolean
  onProgress?: (done: number) => void
}

export type Proof =
  | { holds: true; seeds: number }
  | {
      holds: false
      invariant: Invariant
      detail: string
      /** What happened, a sentence each. */
      story: string[]
      /** How many simulations it took. */
      seeds: number
      seed: number
      path: string
    }

type Simulation = Beginning & { steps: Step[] }

const MOST_STEPS = 120

const simulations: fc.Arbitrary<Simulation> = fc.record({
  duplicateApply: fc.constantFrom('refused' as const, 'paid-again' as const),
  processes: fc.constantFrom(1, 2, 2, 3),
  warm: fc.boolean(),
  steps: fc.array(anyStep, { maxLength: MOST_STEPS, size: 'max' }),
})

/**
 * Runs so many simulations of a payoutd that consists of `parts`, each with its own order of events, and tells the
 * first that breaks an invariant, shrunk to what is needed for it.
 */
export function proveModel({ parts, seeds, seed, path, shrink, onProgress }: Options): Proof {
  let done = 0
  const property = fc.property(simulations, (simulation) => {
    onProgress?.(++done)
    simulate(simulation, parts, null)
  })
  const run = fc.check(property, {
    numRuns: seeds,
    endOnFailure: !shrink,
    ...(seed === undefined ? {} : { seed }),
    ...(path === undefined ? {} : { path }),
  })
  if (!run.failed) return { holds: true, seeds: run.numRuns }
  if (!(run.errorInstance instanceof Broken)) throw run.errorInstance
  const [shortest] = run.counterexample as [Simulation]
  const { story, broken } = retell(shortest, parts)
  const { invariant, message: detail } = broken
  return {
    holds: false,
    invariant,
    detail,
    story,
    seeds: run.numRuns,
    seed: run.seed,
    path: run.counterexamplePath ?? '',
  }
}

/** Throws `Broken`. */
function simulate({ steps, ...beginning }: Simulation, parts: Parts, tell: Tell | null): void {
  const world = new World(beginning, parts, tell)
  try {
    for (const step of steps) {
      take(step, world)
      world.check()
    }
    world.rest()
  } catch (error) {
    if (error instanceof Broken) throw error
    throw new Broken(
      'decisions are values',
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    )
  }
}

function retell(simulation: Simulation, parts: Parts): { story: string[]; broken: Broken } {
  const { duplicateApply, processes, warm } = simulation
  const story = [
    `A gateway for which a second apply is ${duplicateApply}; ${processes} processes, ${warm ? 'no' : 'with a'} canary.`,
  ]
  try {
    simulate(simulation, parts, (sentence) => story.push(sentence()))
  } catch (error) {
    if (error instanceof Broken) return { story, broken: error }
    throw error
  }
  throw new Error('the same events did not lead to the same end')
}
