import { cutText } from '../text/text.ts'
import { MOST } from './limits.ts'

/** What is shown where nothing stands: dots would say that something was hidden. */
export const EMPTY = '(empty)'

/** `50100123456789` → `••••6789`. Short values show nothing. */
export function maskAccount(accountNo: string): string {
  if (accountNo === '') return EMPTY
  return accountNo.length < 8 ? '••••' : `••••${accountNo.slice(-4).replace(/^[\udc00-\udfff]/, '')}`
}

/** `asha.rao@okaxis` → `as••••@okaxis`. What looks like a number of an account is hidden after the @ too. */
export function maskVpa(vpa: string): string {
  const at = vpa.indexOf('@')
  if (at < 0) return maskAccount(vpa)
  return `${cutText(vpa, Math.min(2, Math.max(0, at - 2)))}••••${hideNumbers(vpa.slice(at))}`
}

/** Looked for from the beginning of a word alone: tried at each letter of a long one it takes hundreds of times as long. */
const ADDRESS = /(?<![A-Za-z0-9._-])[A-Za-z0-9._-]{2,}@[A-Za-z0-9.-]{2,}/g
const LONG_TOKEN = /[\p{L}\p{N}]{5,}/gu
/** People write long numbers in groups. Counted in code: as `{8,}` it takes half a second to compile. */
const GROUPED = /\p{N}(?:[^\p{L}\p{N}]{0,3}\p{N})*/gu
/** An account number has no fewer digits in India. */
const FEWEST_DIGITS = 9
const WRITTEN_MOMENT = /^20\d\d-[01]\d-[0-3]\d [0-2]\d:[0-5]\d(?::[0-5]\d)?$/

declare const scrubbed: unique symbol
/** Text without a bank detail in it. What people and other systems write in their own words is kept as nothing else. */
export type Scrubbed = string & { readonly [scrubbed]: true }

/**
 * Free text from outside (an error message, a person's reason, a body that could not be parsed), made safe to store
 * and show: anything that could be an account number, in digits of any script, is masked (five or more letters and
 * digits with four digits among them; nine or more digits in groups, but for a date with a time of day), and so is a
 * VPA or an e-mail. `known` are values that must not appear at all, whatever they look like. Of a text of more than
 * 16,384 UTF-16 units the rest is left out.
 */
export function scrub(text: string, known: readonly string[] = []): Scrubbed {
  let safe = cutText(text, MOST.scrubbed)
  for (const value of known) if (value.length >= 4) safe = safe.replaceAll(value, '••••')
  return hideNumbers(safe.replace(ADDRESS, maskVpa)) as Scrubbed
}

/**
 * Who did something, as it is kept: an e-mail or a staff number stays whole, because it says who it was, and what is as
 * long as an account number is masked.
 */
export const scrubName = (name: string): string => hideGrouped(name)

/** What somebody says about an act, as it is kept with what it changed. */
export const words = ({ by, reason }: { by: string; reason: string }): Scrubbed =>
  `${scrubName(by)}: ${scrub(reason)}` as Scrubbed

const hideNumbers = (text: string): string =>
  hideGrouped(text).replace(LONG_TOKEN, (token) =>
    (token.match(/\p{N}/gu)?.length ?? 0) >= 4 ? maskAccount(token) : token,
  )

const hideGrouped = (text: string): string =>
  text.replace(GROUPED, (number) => {
    const digits = number.match(/\p{N}/gu) ?? []
    return digits.length < FEWEST_DIGITS || WRITTEN_MOMENT.test(number)
      ? number
      : maskAccount(digits.join(''))
  })
