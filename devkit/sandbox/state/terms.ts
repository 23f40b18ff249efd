/** What a payout or a payin costs. */
export type Fees = {
  /** Paise for each. */
  flat: bigint
  /** Hundredths of a per cent of the amount. */
  bps: bigint
}

/** What a payout costs, when it ends, and when a callback is repeated. */
export type PayoutTerms = {
  fees: Fees
  settleMs: number
  callbackRetries: Pauses
}

/** What a payin costs, how long it waits for its payer, and when its money is available after that. */
export type PayinTerms = {
  fees: Fees
  expiryMs: number
  settleMs: number
}

/** Pauses between one callback and its repetition, in seconds. */
export type Pauses = readonly number[]

/** Flat fee and basis points, the latter rounded half up to whole paise. */
export const feeOf = (amount: bigint, { flat, bps }: Fees): bigint => flat + (amount * bps + 5_000n) / 10_000n
