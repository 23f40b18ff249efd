import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../../src/platform/clock.ts'
import type { Failure } from './simulate.ts'

const file = path.join(import.meta.dirname, '..', 'results', 'simulation.json')

/** When, on which commit, and from which seed on how many stories were simulated. */
type Run = { ranAt: string; commit: string; node: string; from: number; seeds: number; seconds: number }

/** What became of stories of a whole payoutd. */
export type Whole = Run & {
  steps: number
  payouts: number
  failures: Pick<Failure, 'seed' | 'invariant' | 'detail'>[]
}

/** The first story that told that a safeguard is missing, and which invariant it broke; null: none did. */
export type Told = { without: string; about: string; seed: number | null; broken: string | null }
export type Without = Run & { told: Told[] }

/** What the simulation came to when it was last run; null: it never was. */
export type SimulationResult = { whole: Whole | null; without: Without | null }

export const simulationResult = (): SimulationResult =>
  existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { whole: null, without: null }

/** Keeps what a run came to, in place of the last one of its kind. */
export function keepSimulation(result: Partial<SimulationResult>): void {
  writeFileSync(file, `${JSON.stringify({ ...simulationResult(), ...result }, null, 2)}\n`)
}

/** To be called when a run begins; what is called then gives the run once it has ended. */
export function beginRun({ seed: from, seeds }: { seed: number; seeds: number }): () => Run {
  const began = systemClock.monotonic()
  const ranAt = new Date(systemClock.now()).toISOString()
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const commit = git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src') && ' and changes')
  return () => ({
    ...{ ranAt, commit, node: process.version, from, seeds },
    seconds: Math.round((systemClock.monotonic() - began) / 1000),
  })
}
