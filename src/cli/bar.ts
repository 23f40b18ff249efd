import { Presets, SingleBar } from 'cli-progress'

/** A progress bar for queries, on a terminal. */
export class Bar {
  readonly #shown: boolean
  #bar: SingleBar | undefined

  constructor(shown: boolean) {
    this.#shown = shown
  }

  show(asked: number, listed: number): void {
    if (!this.#shown) return
    if (!this.#bar) {
      const format = 'asking  {bar} {value} of {total}  {eta_formatted}'
      this.#bar = new SingleBar(
        { format, stream: process.stderr, clearOnComplete: true },
        Presets.shades_classic,
      )
      this.#bar.start(listed, asked)
    }
    this.#bar.update(asked)
  }

  end(): void {
    this.#bar?.stop()
  }
}
