export const SPLIT_AMOUNT =
  'the next cell looks like the rest of this amount: a comma inside a cell needs quotes around the cell. If the amount is whole, write it with .00'

/**
 * `45,000` or `1,45,000` without quotes, in a row whose last cells are missing or empty by as many: a reader would take it for
 * ₹45, or ₹1. `at`: the position of the amount in the row.
 */
export function isSplitAmount(cells: readonly string[], at: number | undefined): boolean {
  const [first, ...rest] = cells.slice(at).map((cell) => cell.trim())
  const groups = rest.findIndex((cell) => !/^\d{2}$/.test(cell))
  return /^(?:₹|rs\.?|inr)?\s*\d{1,3}$/i.test(first ?? '') && /^\d{3}(?!\d)/.test(rest[groups] ?? '')
}
