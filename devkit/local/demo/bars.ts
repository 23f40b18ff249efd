import { Presets, SingleBar } from 'cli-progress'
import type { Clock } from '../../../src/platform/running/clock.ts'
import { seconds } from './steps.ts'

/** How long each phase took, in milliseconds, in their order. */
export type Phases = { name: string; ms: number }[]

/** Reports the progress of each phase on stderr, and remembers how long each took. */
export class PhaseTeller {
  readonly phases: Phases = []
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const began = this.#clock.monotonic()
    const result = await work()
    this.phases.push({ name, ms: this.#clock.monotonic() - began })
    return result
  }

  /** The same with a progress bar if there is a terminal, and a line at the end. `work` reports its progress. */
  async withBar<T>(
    name: string,
    total: number,
    work: (onProgress: (done: number) => void) => Promise<T>,
  ): Promise<T> {
    const bar = process.stderr.isTTY ? newBar() : null
    bar?.start(total, 0, { name: name.padEnd(11) })
    const result = await this.run(name, () => work((done) => bar?.update(done))).finally(() => bar?.stop())
    console.error(`  ${name.padEnd(26)}${seconds(this.phases.at(-1)?.ms ?? 0).padStart(7)}`)
    return result
  }
}

const newBar = (): SingleBar =>
  new SingleBar(
    { format: '  {name} {bar} {value} of {total}', stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  )
