import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { SignRules, Traffic } from './dialect.ts'

/** An object inside an answer. It is signed as its JSON text on the wire. */
export type Nested = Readonly<Record<string, string>>

/** Parameters as they are sent. A signature ignores `null` and `undefined`. */
export type Signable = Readonly<Record<string, string | number | bigint | Nested | null | undefined>>

/**
 * The signature of a request, an answer or a callback: 32 characters of hex for MD5, 64 for HMAC-SHA256
 * (gateway contract, "Authentication"; the variants are the family's).
 */
export function sign(params: Signable, key: string, rules: SignRules, traffic: Traffic): string {
  const text = `${textToSign(params, rules, traffic)}${rules.keySuffix}=${key}`
  const hex =
    rules.algorithm === 'md5'
      ? hash('md5', text, 'hex')
      : createHmac('sha256', key).update(text).digest('hex')
  return rules.hexCase === 'upper' ? hex.toUpperCase() : hex
}

/** The text to sign, up to the key. Values enter it as they are sent, neither escaped nor rebuilt. */
export function textToSign(params: Signable, { sort, emptyFields }: SignRules, traffic: Traffic): string {
  const withEmpty = emptyFields[traffic]
  const parts: { text: string; order: string }[] = []
  for (const name in params) {
    const value = params[name]
    if (value === null || value === undefined || name === 'sign' || (value === '' && !withEmpty)) continue
    const text = `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}&`
    // Whole `name=value&` strings: `bank1=` comes before `bank=`.
    parts.push({ text, order: sort === 'name' ? name : foldCase(text) })
  }
  parts.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0))
  let signed = ''
  for (const { text } of parts) signed += text
  return signed
}

/** Whether a request's `given` is the signature of `params`. A near miss takes as long as a far one. */
export function isSignedBy(params: Signable, key: string, rules: SignRules, given: string): boolean {
  const expected = Buffer.from(sign(params, key, rules, 'requests'))
  const received = Buffer.from(given)
  return received.length === expected.length && timingSafeEqual(received, expected)
}

/**
 * How Java's String.CASE_INSENSITIVE_ORDER sees a text: each UTF-16 unit in upper case, then lower case. By unit
 * and not by string, because `'ß'.toUpperCase()` is two letters and Java's Character has one.
 */
function foldCase(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII, where both ways agree
  if (/^[\u0000-\u007f]*$/.test(text)) return text.toLowerCase()
  let folded = ''
  for (let i = 0; i < text.length; i++) folded += single(single(text.charAt(i), 'upper'), 'lower')
  return folded
}

function single(unit: string, to: 'upper' | 'lower'): string {
  // The only longer lower case ("İ" → "i" and a dot) begins with Java's result.
  if (to === 'lower') return unit.toLowerCase().charAt(0)
  const changed = unit.toUpperCase()
  return changed.length === 1 ? changed : unit
}
