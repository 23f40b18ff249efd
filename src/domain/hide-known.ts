/** What programs write in place of a character: in URLs and forms, in HTML, in JSON, also in JSON within JSON. */
const ESCAPES =
  /(?:%(?:25){0,2}[0-9a-f]{2})+|&#(?:x[0-9a-f]{1,6}|[0-9]{1,7});|&(?:amp|lt|gt|quot|apos|nbsp|commat|sol);|\\{1,8}(?:u[0-9a-f]{4}|x[0-9a-f]{2}|["'/])|\\\\/gi
const MAY_ESCAPE = /[%&\\]/
const NAMED: Record<string, string> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" },
  ...{ nbsp: ' ', commat: '@', sol: '/' },
}

/** The same letter at the end of a word as elsewhere, and one kind of space. */
const inSmall = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ').replace(/\s/g, ' ')

/** A text as people read it, in small letters; for each of its UTF-16 units, where what it stands for begins and ends. */
type Plain = { text: string; from: number[]; to: number[] }

/**
 * Masks these values in a text, whether in small or capital letters, and also where they are escaped as in a URL, a form, HTML or
 * JSON. Values with fewer UTF-16 units than `least` may be there by chance, and stay.
 */
export function hideKnown(text: string, known: readonly string[], least: number): string {
  if (known.length === 0 || text === '') return text
  const values = valuesOf(known).filter(({ length }) => length >= least)
  // A part of a value may look like an escape by chance.
  const read = inSmall(text)
  const raw = values.some((value) => read.includes(value)) ? hideIn(text, plainOf(text, []), values) : text
  const hidden = MAY_ESCAPE.test(raw) ? hideIn(raw, plainOf(raw, raw.matchAll(ESCAPES)), values) : raw
  const spaced = values.filter((value) => value.includes(' '))
  if (spaced.length === 0 || !hidden.includes('+')) return hidden
  const plain = plainOf(hidden, hidden.matchAll(ESCAPES))
  return hideIn(hidden, { ...plain, text: plain.text.replaceAll('+', ' ') }, spaced)
}

/** Each field of an exchange is compared with the same values. */
const small = new WeakMap<readonly string[], readonly string[]>()

function valuesOf(known: readonly string[]): readonly string[] {
  const values = small.get(known) ?? known.map(inSmall)
  small.set(known, values)
  return values
}

function hideIn(text: string, plain: Plain, values: readonly string[]): string {
  const found = values.flatMap((value) => placesOf(value, plain)).sort((a, b) => a.from - b.from)
  let shown = ''
  let end = 0
  for (const { from, to } of found) {
    if (to <= end) continue
    if (from >= end) shown += `${text.slice(end, from)}••••`
    end = to
  }
  return found.length === 0 ? text : shown + text.slice(end)
}

function placesOf(value: string, { text, from, to }: Plain): { from: number; to: number }[] {
  const places: { from: number; to: number }[] = []
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + value.length))
    places.push({ from: from[at] as number, to: to[at + value.length - 1] as number })
  return places
}

function plainOf(text: string, escapes: Iterable<RegExpExecArray>): Plain {
  const plain: Plain = { text: '', from: [], to: [] }
  const add = (units: string, from: number, to: number) => {
    const small = inSmall(units)
    plain.text += small
    for (let i = 0; i < small.length; i++) {
      plain.from.push(from)
      plain.to.push(to)
    }
  }
  let end = 0
  const addRaw = (until: number) => {
    for (const char of text.slice(end, until)) {
      add(char, end, end + char.length)
      end += char.length
    }
  }
  for (const { 0: escaped, index } of escapes) {
    addRaw(index)
    end = index + escaped.length
    add(meaningOf(escaped), index, end)
  }
  addRaw(text.length)
  return plain
}

function meaningOf(escaped: string): string {
  if (escaped.startsWith('\\')) {
    const meant = escaped.replace(/^\\+/, '')
    return meant.length > 1 ? String.fromCharCode(Number.parseInt(meant.slice(1), 16)) : meant || '\\'
  }
  if (escaped.startsWith('%')) {
    const bytes = [...escaped.matchAll(/%(?:25){0,2}([0-9a-f]{2})/gi)].map(([, hex = '']) =>
      Number.parseInt(hex, 16),
    )
    return new TextDecoder().decode(Uint8Array.from(bytes))
  }
  const name = escaped.slice(1, -1).toLowerCase()
  if (!name.startsWith('#')) return NAMED[name] ?? ''
  const code = name.startsWith('#x') ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}
