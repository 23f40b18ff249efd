export const SPLIT_AMOUNT =
  'the next cell looks like the rest of this amount: a comma inside a cell needs quotes around the cell. If the amount is whole, write it with .00'

/** A currency, and whatever else keeps a spreadsheet from reading a number, such as an apostrophe. */
const BEFORE_DIGITS = /^(?:[^\p{L}\p{N}]|rs|inr)*/iu
const FIRST_GROUP = /^\p{Nd}{1,3}[^\p{L}\p{N}]*$/u
const MIDDLE_GROUP = /^\p{Nd}{2}[^\p{L}\p{N}]*$/u
const LAST_GROUP = /^\p{Nd}{3}(?!\p{Nd})/u

/**
 * `45,000` or `1,45,000` without quotes, in a row whose last cells are missing or empty by as many: a reader would take it for
 * ₹45, or ₹1. `at`: the position of the amount in the row.
 */
export function isSplitAmount(cells: readonly string[], at: number | undefined): boolean {
  const [first = '', ...rest] = cells.slice(at).map((cell) => cell.replace(BEFORE_DIGITS, ''))
  const last = rest.find((cell) => !MIDDLE_GROUP.test(cell))
  return FIRST_GROUP.test(first) && LAST_GROUP.test(last ?? '')
}
