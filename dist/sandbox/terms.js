/** Flat fee and basis points, the latter rounded half up to whole paise. */
export const feeOf = (amount, { flat, bps }) => flat + (amount * bps + 5000n) / 10000n;
