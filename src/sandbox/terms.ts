/** What a payout costs, when it ends and how often a callback is repeated. */
export type Terms = {
  /** Paise per payout. */
  feeFlat: bigint
  /** Hundredths of a per cent of the amount. */
  feeBps: bigint
  settleMs: number
  /** Pauses between one callback and its repetition, in seconds. */
  callbackRetries: readonly number[]
}

/** Flat fee and basis points, the latter rounded half up to whole paise. */
export const feeOf = (amount: bigint, { feeFlat, feeBps }: Pick<Terms, 'feeFlat' | 'feeBps'>): bigint =>
  feeFlat + (amount * feeBps + 5_000n) / 10_000n
