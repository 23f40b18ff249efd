/**
 * Text that every store, log and screen accepts. Text from outside may hold a NUL, which PostgreSQL refuses, or
 * half of a surrogate pair, which has no UTF-8: both become U+FFFD, the replacement character.
 */
export const wellFormed = (text: string): string =>
  isWellFormed(text) ? text : text.toWellFormed().replaceAll('\0', '\ufffd')

const isWellFormed = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** The first `most` UTF-16 units of a text at most, and never half a character. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const endsInHalf = /[\ud800-\udbff]/.test(text.charAt(most - 1))
  return text.slice(0, endsInHalf ? most - 1 : most)
}

/** What takes no place on a screen: format and C1 control characters, and what fonts have no picture for. */
const NO_PLACE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Noncharacter_Code_Point}\u0080-\u009f]/gu
/** White space of every kind; the blank Braille pattern is none to Unicode. */
const BLANKS = /[\s\u2800]+/g
/** Hyphens, dashes and the minus sign. */
const DASHES = /[\p{Pd}\u2043\u2212]/gu
const APOSTROPHES = /[\u00b4\u02bc\u2018\u2019\u2032]/g
/** ASCII as wide as a Chinese character, in the same order as ASCII. */
const WIDE = /[\uff01-\uff5e]/g
const WIDE_BY = 0xfee0

/**
 * What a person sees of a text, for comparing: without invisible characters, in one Unicode form, with one kind of space, dash,
 * apostrophe and width. Letter case counts, and so do letters of different scripts that look alike. ASCII stays as it is but for
 * spaces.
 */
export const asSeen = (text: string): string =>
  text
    .replace(NO_PLACE, '')
    .normalize('NFC')
    .replace(WIDE, (wide) => String.fromCharCode(wide.charCodeAt(0) - WIDE_BY))
    .replace(DASHES, '-')
    .replace(APOSTROPHES, "'")
    .replace(BLANKS, ' ')
    .trim()

/** An address without the slashes at its end. */
export function withoutLastSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}

/** How JSON writes a NUL or half a pair; the same six characters may also be ordinary text. */
const NOT_WELL_FORMED = /\\u(?:0000|d[89a-f])/i

/** JSON text whose strings and names are all well-formed, so that a jsonb column accepts it. */
export const wellFormedJson = (json: string): string =>
  NOT_WELL_FORMED.test(json) ? JSON.stringify(everyText(JSON.parse(json), wellFormed)) : json

/** The same value with `change` applied to every string and every field name in it. */
export function everyText<T>(value: T, change: (text: string) => string): T
export function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => everyText(each, change))
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return value
  if (value instanceof Date || value instanceof Map || value instanceof Set) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [change(name), everyText(each, change)]),
  )
}

/** Whether `everyText` would leave the value as it is for `wellFormed`. */
export function hasOnlyGoodText(value: unknown): boolean {
  if (typeof value === 'string') return isWellFormed(value)
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return true
  for (const name in value) {
    if (!isWellFormed(name) || !hasOnlyGoodText(value[name as keyof typeof value])) return false
  }
  return true
}

/** Control characters (C0, DEL, C1), line separators, and characters that change the writing direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * A text from outside as one line for people: characters that would move a terminal's cursor, ring its bell, or
 * reorder the text become `\u001b`, and no text can begin its own line.
 */
export const visible = (text: string): string => wellFormed(text).replace(UNSEEN, escaped)

/** Text for a terminal whose lines are ours: escapes the same characters as `visible`, except line ends. */
export const onScreen = (text: string): string => text.split('\n').map(visible).join('\n')

/** JSON text without those characters; the unescaped ones that JSON allows only occur inside its strings. */
export const visibleJson = (json: string): string => wellFormedJson(json).replace(UNSEEN, escaped)

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
