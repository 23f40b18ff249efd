import type { Clock } from '../../../src/platform/running/clock.ts'
import type { OnStep, Step } from './installation.ts'

const NAMES: Partial<Record<Step, string>> = {
  postgres: 'PostgreSQL',
  kafka: 'Kafka',
  registry: 'schema registry',
  sandbox: 'gateway sandbox',
}

/** Reports each finished step on stderr, with the seconds since the first one. */
export function stepTeller(clock: Clock): OnStep {
  let began: number | undefined
  return (step, state) => {
    began ??= clock.monotonic()
    const name = NAMES[step] ?? step
    if (state === 'ready')
      console.error(`  ${name.padEnd(26)}${seconds(clock.monotonic() - began).padStart(7)}`)
    if (state === 'stopped') console.error(`  ${name} stopped`)
  }
}

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
