import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../../src/platform/running/clock.ts'
import type { Failure } from './simulate.ts'

const file = path.join(import.meta.dirname, '..', 'results', 'simulation.json')

/** When, on which commit, and how many stories from which seed were simulated. */
type Run = { ranAt: string; commit: string; node: string; from: number; seeds: number; seconds: number }

/** The results of stories with the whole payoutd. */
export type Whole = Run & {
  steps: number
  payouts: number
  failures: Pick<Failure, 'seed' | 'invariant' | 'detail'>[]
}

/** The first story that showed the missing safeguard, and which invariant it broke; null: none did. */
export type SimulationRow = { without: string; about: string; seed: number | null; broken: string | null }
export type Without = Run & { told: SimulationRow[] }

/** The latest runs of the whole, and the last one without each safeguard; null: there was none. */
export type SimulationResult = { whole: readonly Whole[]; without: Without | null }

/** How many runs of the whole are kept. */
const LATEST = 10

export const simulationResult = (): SimulationResult =>
  existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { whole: [], without: null }

/** Stores a run's result; a run without safeguards replaces the last such one. */
export function keepSimulation(ran: { whole: Whole } | { without: Without }): void {
  const before = simulationResult()
  const kept = 'whole' in ran ? { whole: [...before.whole, ran.whole].slice(-LATEST) } : ran
  writeFileSync(file, `${JSON.stringify({ ...before, ...kept }, null, 2)}\n`)
}

/** Call this when a run begins; the function it returns gives the run once it has ended. */
export function beginRun({ seed: from, seeds }: { seed: number; seeds: number }): () => Run {
  const began = systemClock.monotonic()
  const ranAt = new Date(systemClock.now()).toISOString()
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const commit =
    git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src', 'devkit') && ' and changes')
  return () => ({
    ...{ ranAt, commit, node: process.version, from, seeds },
    seconds: Math.round((systemClock.monotonic() - began) / 1000),
  })
}
