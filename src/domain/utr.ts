/** A UTR in one case, because banks and gateways use either. The ledger's indexes do the same. */
export const utrKey = (utr: string): string => utr.toUpperCase()

/** Whether both are the same UTR, or both are none. */
export const isSameUtr = (one: string | null, other: string | null): boolean =>
  (one && utrKey(one)) === (other && utrKey(other))
