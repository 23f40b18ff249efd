import { type Paise, paise } from './money.ts'

export type Rupees = { kind: 'amount'; amount: Paise } | { kind: 'unreadable'; rule: string; message: string }

const CURRENCY = /^(?:₹|rs\.?|inr)\s*/i
const ENDING = '/-'
const PLAIN = /^\d+$/
/** 12,34,567: three digits at the end, twos before. */
const INDIAN = /^\d{1,2}(?:,\d{2})*,\d{3}$/
/** 1,234,567: how spreadsheets with other settings write it. No text reads differently in the two. */
const WESTERN = /^\d{1,3}(?:,\d{3})+$/
const MAX_DIGITS = 13

const unreadable = (rule: string, message: string): Rupees => ({ kind: 'unreadable', rule, message })

/**
 * Reads an amount of rupees as people write it: `100000`, `1,00,000`, `100,000.00`, `₹1,00,000`, `Rs. 500`, `INR 500`,
 * `500/-`, with spaces around. It refuses a text with two readings, or that is not a whole number of rupees, and says what
 * to write instead.
 */
export function rupeesToPaise(text: string): Rupees {
  const read = rupeesAndPaise(text)
  return read.kind === 'amount' && read.amount % 100n !== 0n
    ? unreadable('whole-rupees', 'must be whole rupees: the gateway pays no paise')
    : read
}

/** The same for an amount that may have paise, as in a bank's statement: `7.5`, `1,00,000.50`. */
export function rupeesAndPaise(text: string): Rupees {
  const written = text.trim()
  if (written === '') return unreadable('required', 'must be given')
  if (/(?![0-9])\p{Nd}/u.test(written))
    return unreadable('ascii-digits', 'write the amount with the digits 0 to 9')
  const figure = written.replace(CURRENCY, '')
  const bare = figure.endsWith(ENDING) ? figure.slice(0, -ENDING.length).trimEnd() : figure
  if (/^[-−(]/.test(bare) || /^[-−(]/.test(written)) return unreadable('positive', 'must be more than zero')
  if (/^\d+(\.\d+)?e[+-]?\d+$/i.test(bare)) {
    return unreadable(
      'scientific',
      'the spreadsheet shortened this number: format the column as a number without decimals and type it again',
    )
  }
  if (bare.startsWith('.')) return unreadable('before-point', 'must have rupees before the point: 50 or 0.50')
  const [whole, fraction = '00', ...more] = bare.split('.') as [string, ...string[]]
  const digits = whole.replaceAll(',', '')
  if (more.length > 0 || !PLAIN.test(digits) || !/^\d{1,2}$/.test(fraction)) {
    return unreadable('amount-format', 'must be rupees, such as 50000, 50,000 or ₹50,000.00')
  }
  if (!PLAIN.test(whole) && !INDIAN.test(whole) && !WESTERN.test(whole)) {
    return unreadable('grouping', 'the commas are not where they belong: 1,00,000 or 100000')
  }
  if (digits.length > MAX_DIGITS) return unreadable('size', `must have at most ${MAX_DIGITS} digits`)
  return { kind: 'amount', amount: paise(BigInt(digits + fraction.padEnd(2, '0'))) }
}
