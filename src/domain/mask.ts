import { cutText } from '../text/text.ts'
import { hideKnown } from './hide-known.ts'
import { MOST } from './limits.ts'

/** Shown for an empty value: dots would suggest that something was hidden. */
export const EMPTY = '(empty)'

/** `50100123456789` → `••••6789`. Short values show nothing. */
export function maskAccount(accountNo: string): string {
  if (accountNo === '') return EMPTY
  return accountNo.length < 8 ? '••••' : `••••${accountNo.slice(-4).replace(/^[\udc00-\udfff]/, '')}`
}

/** `asha.rao@okaxis` → `as••••@okaxis`. Masks what looks like an account number after the @ too. */
export function maskVpa(vpa: string): string {
  const at = vpa.indexOf('@')
  if (at < 0) return maskAccount(vpa)
  return maskLocal(vpa.slice(0, at)) + hideNumbers(vpa.slice(at))
}

/** Whatever stands between spaces, brackets and the like: a word, an address, or several that something joins. */
const JOINED = /(?:[^\s"<>(){}[\],;:=&]|&(?:#0{0,5}64|#x0{0,4}40|commat);)+/giu
/** The @ of a VPA or an e-mail address, also as in a URL, HTML or JSON. */
const AT = /(@|%(?:25){0,2}40|&#0{0,5}64;|&#x0{0,4}40;|&commat;|\\{1,8}(?:u0040|x40))/giu
const HOST = /^[\p{L}\p{M}\p{N}._-]*/u
const PATH_SEPARATORS = ['/', '|', '\\']
const LONG_TOKEN = /[\p{L}\p{N}]{5,}/gu
/** People write long numbers in groups. Code counts the digits: with `{8,}` the pattern takes half a second to compile. */
const GROUPED = /\p{N}(?:[^\p{L}\p{N}]{0,3}\p{N})*/gu
/** As GROUPED, but a slash ends a number: INV/2026-11/000123 has none of nine digits. */
const SPACED = /\p{N}(?:[\s\p{Pd}\p{Pc}−.,']*\p{N})*/gu
/** In India an account number has at least nine digits. */
const FEWEST_DIGITS = 9
/** A shorter value may be there by chance. */
const SHORTEST_KNOWN = 4
const WRITTEN_MOMENT = /^20\d\d-[01]\d-[0-3]\d [0-2]\d:[0-5]\d(?::[0-5]\d)?$/

declare const scrubbed: unique symbol
/** Text without bank details. payoutd keeps the free text of people and other systems only in this form. */
export type Scrubbed = string & { readonly [scrubbed]: true }

/**
 * Makes free text from outside (an error message, a person's reason, a body that could not be parsed) safe to store and
 * show. Masks anything that could be an account number, in digits of any script: five or more letters and digits with four
 * digits among them; nine or more digits in groups, except a date with a time of day. Masks VPAs and e-mail addresses too.
 * `known` are values that must not appear at all, whatever they look like. Leaves out everything after 16,384 UTF-16 units.
 */
export function scrub(text: string, known: readonly string[] = []): Scrubbed {
  const safe = cutText(text, MOST.scrubbed)
  return hideNumbers(hideKnown(safe, known, SHORTEST_KNOWN).replace(JOINED, maskAddresses)) as Scrubbed
}

/**
 * The name of whoever acted, as payoutd keeps it. An e-mail or a staff number stays whole, because it identifies the person;
 * a number as long as an account number is masked.
 */
export const scrubName = (name: string): string => hideGrouped(name)

/** A payment's reference, for lists that people pass on: it stays readable but for a number as long as an account number. */
export const scrubReference = (reference: string): string => hideGrouped(reference, SPACED)

/** A person's reason for an act, as payoutd keeps it with the change. */
export const words = ({ by, reason }: { by: string; reason: string }): Scrubbed =>
  `${scrubName(by)}: ${scrub(reason)}` as Scrubbed

/** Masks what stands before each @, up to the host of the address before it. A statement's narration joins several texts by slashes. */
function maskAddresses(joined: string): string {
  const parts = joined.split(AT)
  return parts
    .map((part, i) => {
      if (i % 2 === 1 || i === parts.length - 1 || part === '') return part
      const host = i === 0 ? '' : (HOST.exec(part)?.[0] ?? '')
      if (i > 0 && host === part) return maskLocal(part)
      const separator = Math.max(...PATH_SEPARATORS.map((each) => part.slice(0, -1).lastIndexOf(each)))
      const begin = Math.max(separator + 1, i === 0 ? 0 : host.length)
      return part.slice(0, begin) + maskLocal(part.slice(begin))
    })
    .join('')
}

const maskLocal = (text: string): string => `${cutText(text, Math.min(2, Math.max(0, text.length - 2)))}••••`

const hideNumbers = (text: string): string =>
  hideGrouped(text).replace(LONG_TOKEN, (token) =>
    (token.match(/\p{N}/gu)?.length ?? 0) >= 4 ? maskAccount(token) : token,
  )

const hideGrouped = (text: string, pattern = GROUPED): string =>
  text.replace(pattern, (number) => {
    const digits = number.match(/\p{N}/gu) ?? []
    return digits.length < FEWEST_DIGITS || WRITTEN_MOMENT.test(number)
      ? number
      : maskAccount(digits.join(''))
  })
