/** A set of row numbers, one bit each. */
export class RowSet {
  #bits = new Uint8Array(1 << 10)

  add(row: number): void {
    const at = row >>> 3
    if (at >= this.#bits.length) {
      const bits = new Uint8Array(Math.max(at + 1, this.#bits.length * 2))
      bits.set(this.#bits)
      this.#bits = bits
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (row & 7))
  }

  has(row: number): boolean {
    return ((this.#bits[row >>> 3] ?? 0) & (1 << (row & 7))) !== 0
  }
}
