export const SPLIT_AMOUNT =
  'the next cell looks like the rest of this amount: a comma inside a cell needs quotes around the cell. If the amount is whole, write it with .00'

/**
 * `45,000` or `1,45,000` without quotes, in a row that lacks as many cells at its end, or has empty ones there: it would
 * be read as ₹45, or ₹1. `at`: where in the row the amount stands.
 */
export function isSplitAmount(cells: readonly string[], at: number | undefined): boolean {
  const [first, ...rest] = cells.slice(at).map((cell) => cell.trim())
  const groups = rest.findIndex((cell) => !/^\d{2}$/.test(cell))
  return /^(?:₹|rs\.?|inr)?\s*\d{1,3}$/i.test(first ?? '') && /^\d{3}(?!\d)/.test(rest[groups] ?? '')
}
