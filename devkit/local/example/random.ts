/** Numbers that look random and are the same for the same seed, on any machine: mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 up to `below`, exclusive. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below)
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T
  }

  digits(count: number): string {
    let text = ''
    while (text.length < count) text += this.below(10)
    return text
  }

  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items]
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[result[i], result[j]] = [result[j] as T, result[i] as T]
    }
    return result
  }
}
