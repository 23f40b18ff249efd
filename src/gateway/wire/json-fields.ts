const MOST_FIELDS = 64

/**
 * Reads the text of a JSON object into its fields, each value as it travelled, because the signature covers that: a string's
 * content; a number as written (`1e2`, `10.0` and integers past 2^53 stay as they are); an object or a list as its own text, with
 * its spaces; null as null. Returns null for anything but one JSON object, for an object that repeats a name, and for one of more
 * than 64 fields: no answer of the contract has a quarter of that, and the client would have to sort and sign them all.
 */
export function readJsonFields(text: string): Map<string, string | null> | null {
  if (!isJsonObject(text)) return null
  // From here on the text is known to be well-formed, so it is enough to find where things end.
  const fields = new Map<string, string | null>()
  let at = skipSpace(text, text.indexOf('{') + 1)
  while (text[at] !== '}') {
    const nameEnd = endOfString(text, at)
    const name: string = JSON.parse(text.slice(at, nameEnd))
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const end = endOfValue(text, start)
    if (fields.has(name) || fields.size === MOST_FIELDS) return null
    fields.set(name, asTravelled(text.slice(start, end)))
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return fields
}

function isJsonObject(text: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
  } catch {
    return false
  }
}

function asTravelled(source: string): string | null {
  if (source === 'null') return null
  if (source[0] !== '"') return source
  return source.includes('\\') ? JSON.parse(source) : source.slice(1, -1)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

function skipSpace(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

/** The index after the closing quote of the string that opens at `from`. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) return at + 1
    if (unit === BACKSLASH) at++
  }
}

function endOfValue(text: string, from: number): number {
  const first = text[from]
  if (first === '"') return endOfString(text, from)
  if (first === '{' || first === '[') return endOfNested(text, from)
  let at = from
  while (!/[\s,}]/.test(text[at] as string)) at++
  return at
}

function endOfNested(text: string, from: number): number {
  let depth = 0
  for (let at = from; ; at++) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at) - 1
    else if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1
  }
}
