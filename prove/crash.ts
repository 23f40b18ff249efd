import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { type CrashMoment, type PointName, watchCrashPoints } from '../src/platform/running/crash-points.ts'

/**
 * Loaded before a command of payoutd (`node --import prove/crash.ts …`): records every crash point that the process
 * reaches, and ends or freezes it at the one that PROVE_CRASH names. The product reads none of this.
 */
export type Crash = {
  moment: CrashMoment | 'under way'
  name: PointName
  /** At which arrival at the point; the first is 1. */
  nth: number
  /** `freeze` stops the process until something wakes it. */
  how: 'kill' | 'freeze'
}

const { PROVE_CRASH, PROVE_REACHED = '', PROVE_CLOCK_OFF_MS } = process.env

// A machine with a wrong clock: every wall clock is off, no monotonic one.
if (PROVE_CLOCK_OFF_MS) {
  const rightNow = Date.now
  Date.now = () => rightNow() + Number(PROVE_CLOCK_OFF_MS)
}

const crash = PROVE_CRASH ? (JSON.parse(PROVE_CRASH) as Crash) : null
const seen = new Set<string>()
let passed = 0

watchCrashPoints((moment, name) => {
  reached(`${moment} ${name}`)
  // The bytes of a request are on the wire once this turn of the loop is over.
  if (moment === 'before send') setImmediate(() => arrive('under way', name))
  arrive(moment, name)
})

function arrive(moment: Crash['moment'], name: PointName): void {
  if (moment === 'under way') reached(`${moment} ${name}`)
  if (!crash || crash.moment !== moment || crash.name !== name || ++passed !== crash.nth) return
  const done = `${PROVE_REACHED}.done`
  if (existsSync(done)) return
  writeFileSync(done, '')
  process.kill(process.pid, crash.how === 'kill' ? 'SIGKILL' : 'SIGSTOP')
}

function reached(point: string): void {
  if (seen.has(point)) return
  seen.add(point)
  appendFileSync(PROVE_REACHED, `${point}\n`)
}
