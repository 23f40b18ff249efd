import { blame, isLocked } from './faults.ts'

/**
 * Goes round merchants, one after the other. If the database fails for one of them, it may be away, and the round
 * ends. As it may fail for that merchant alone, the next round begins after it. A locked row is that merchant's alone.
 */
export class Rounds<Each extends { merchantId: string }> {
  #endedAt: string | null = null

  /** Resolves once each has had its step. `refused` gets those for which anything else failed; the others go on. */
  async go(
    all: readonly Each[],
    step: (each: Each) => Promise<void>,
    refused: (each: Each, error: unknown) => void,
  ): Promise<void> {
    const first = all.findIndex(({ merchantId }) => merchantId === this.#endedAt) + 1
    for (const each of [...all.slice(first), ...all.slice(0, first)]) {
      try {
        await step(each)
      } catch (error) {
        if (blame(error) === 'database' && !isLocked(error)) {
          this.#endedAt = each.merchantId
          throw error
        }
        refused(each, error)
      }
    }
  }
}
