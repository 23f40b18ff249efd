import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../../src/platform/running/clock.ts'
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
export type SimulationRow = { without: string; about: string; seed: number | null; broken: string | null }
export type Without = Run & { told: SimulationRow[] }

/** What the latest runs of the whole came to, and the last one without each safeguard; null: there was none. */
export type SimulationResult = { whole: readonly Whole[]; without: Without | null }

/** As many runs of the whole as are kept. */
const LATEST = 10

export const simulationResult = (): SimulationResult =>
  existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { whole: [], without: null }

/** Keeps what a run came to: without safeguards in place of the last such one. */
export function keepSimulation(ran: { whole: Whole } | { without: Without }): void {
  const before = simulationResult()
  const kept = 'whole' in ran ? { whole: [...before.whole, ran.whole].slice(-LATEST) } : ran
  writeFileSync(file, `${JSON.stringify({ ...before, ...kept }, null, 2)}\n`)
}

/** To be called when a run begins; what is called then gives the run once it has ended. */
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
