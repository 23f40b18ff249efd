/** A UTR without regard to the case of its letters, which banks and gateways write as they please; as the ledger's indexes. */
export const utrKey = (utr: string): string => utr.toUpperCase()

/** Whether these are one UTR, or both none. */
export const isSameUtr = (one: string | null, other: string | null): boolean =>
  (one && utrKey(one)) === (other && utrKey(other))
