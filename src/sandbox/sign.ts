import { hash, timingSafeEqual } from 'node:crypto'

/** Parameters as they travel. `null`, `undefined` and the empty string take no part in a signature. */
export type Signable = Record<string, string | number | bigint | null | undefined>

/**
 * The signature of a request, an answer or a callback: 32 characters of upper-case hex (gateway contract,
 * "Authentication"; rules of the family's default form, `md5-upper`). Values enter it as they travel,
 * neither escaped nor re-built.
 */
export function sign(params: Signable, key: string): string {
  const parts: { text: string; order: string }[] = []
  for (const name in params) {
    const value = params[name]
    if (value === null || value === undefined || value === '' || name === 'sign') continue
    const text = `${name}=${value}&`
    parts.push({ text, order: foldCase(text) })
  }
  // Whole `name=value&` strings are sorted, not names: `bank1=` comes before `bank=`.
  parts.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0))
  let signed = ''
  for (const { text } of parts) signed += text
  return hash('md5', `${signed}key=${key}`, 'hex').toUpperCase()
}

/** Whether `given` is the signature of `params`. Takes as long for a near miss as for a far one. */
export function isSignedBy(params: Signable, key: string, given: string): boolean {
  const expected = Buffer.from(sign(params, key))
  const received = Buffer.from(given)
  return received.length === expected.length && timingSafeEqual(received, expected)
}

/**
 * How Java's String.CASE_INSENSITIVE_ORDER sees a text: each UTF-16 unit made upper-case, then lower-case.
 * By unit and not by string, because `'ß'.toUpperCase()` is two letters and Java's Character has one.
 */
function foldCase(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII, where both ways agree
  if (/^[\u0000-\u007f]*$/.test(text)) return text.toLowerCase()
  let folded = ''
  for (let i = 0; i < text.length; i++) folded += single(single(text.charAt(i), 'upper'), 'lower')
  return folded
}

function single(unit: string, to: 'upper' | 'lower'): string {
  // The one longer lower case ("İ" → "i" and a dot) begins with what Java gives.
  if (to === 'lower') return unit.toLowerCase().charAt(0)
  const changed = unit.toUpperCase()
  return changed.length === 1 ? changed : unit
}
