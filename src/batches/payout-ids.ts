import { hash } from 'node:crypto'

/**
 * A set of payoutIds, 8 bytes each. Two ids share all 64 bits of their hash once in 37 million sets of a million ids; then a payout
 * counts as in the set.
 */
export class PayoutIds {
  #hashes = new BigInt64Array(1 << 10)
  #size = 0
  #isSorted = true

  add(payoutId: string): void {
    if (this.#size === this.#hashes.length) {
      const larger = new BigInt64Array(this.#hashes.length * 2)
      larger.set(this.#hashes)
      this.#hashes = larger
    }
    this.#hashes[this.#size++] = hash64(payoutId)
    this.#isSorted = false
  }

  has(payoutId: string): boolean {
    if (!this.#isSorted) this.#hashes.subarray(0, this.#size).sort()
    this.#isSorted = true
    const wanted = hash64(payoutId)
    let [from, to] = [0, this.#size]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#hashes[middle] as bigint) < wanted) from = middle + 1
      else to = middle
    }
    return from < this.#size && this.#hashes[from] === wanted
  }
}

/** The first 64 bits of its SHA-256. */
export const hash64 = (payoutId: string): bigint => hash('sha256', payoutId, 'buffer').readBigInt64LE()
