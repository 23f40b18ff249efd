import { createHash } from 'node:crypto'
import type { PayoutCommand } from '../../domain/commands/command.ts'

/** Rows per request: larger requests gain nothing, and a crash repeats at most one. */
export const ROWS_AT_ONCE = 500

/**
 * What a file pays, row by row in its order, as one hash of everything before each request: 64 bytes per 500 rows, which reveal
 * no bank details.
 */
export class PayableDigest {
  readonly #hash = createHash('sha256')
  readonly #requests: string[] = []
  #rows = 0

  add(command: PayoutCommand): void {
    this.#hash.update(JSON.stringify({ ...command, amount: String(command.amount) }))
    if (++this.#rows % ROWS_AT_ONCE === 0) this.#requests.push(this.whole)
  }

  /** In hex, over all rows so far. */
  get whole(): string {
    return this.#hash.copy().digest('hex')
  }

  /** Whether `later`, which stands behind a whole request, has the same rows up to this point. */
  beginsLike(later: PayableDigest): boolean {
    const request = later.#requests.length - 1
    return this.#requests[request] === later.#requests[request]
  }
}
