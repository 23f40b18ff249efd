import { parse } from 'node:querystring'
import type { Dialect } from './dialect.ts'

/** The parameters of one request. No prototype: any name is only a name. */
export type Params = Readonly<Record<string, string | undefined>>

/**
 * A request's parameters, each value as it was sent, and their source: a form, JSON or the query string. A
 * parameter that came twice is in `repeated` only: it is ambiguous.
 */
export type Form = { params: Params; repeated: readonly string[]; from: Dialect['body'] }

/** The request's parameters cannot be read. */
export class UnreadableForm extends Error {
  readonly statusCode = 400
}

/**
 * Decodes application/x-www-form-urlencoded, from a body or a query string. Throws UnreadableForm on an invalid
 * percent sign or byte.
 */
export function parseForm(text: string, from: 'form' | 'query'): Form {
  if (!isDecodable(text)) throw new UnreadableForm('the parameters are not percent-encoded UTF-8')
  const params = parse(text, '&', '=', { maxKeys: 0 })
  const repeated: string[] = []
  for (const name in params) {
    if (!Array.isArray(params[name])) continue
    repeated.push(name)
    delete params[name]
  }
  return { params: params as Record<string, string>, repeated, from }
}

const NOT_FLAT = 'the body is not one JSON object of texts, numbers, booleans and nulls'

/** A parameter such as `"amount":010000`. */
const LEADING_ZERO = /"(\w{1,32})"\s*:\s*-?0\d/

/** A text in JSON, and the colon after it if it is a name. */
const TEXT = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?/g

/**
 * Decodes one JSON object of texts, numbers, booleans and nulls. A number stays as it was written (`1e2`, `10.0`),
 * because that was signed; a null counts as absent. Throws UnreadableForm for anything else.
 */
export function parseJson(body: string): Form {
  let given: unknown
  try {
    given = JSON.parse(body, asTravelled as (name: string, value: unknown) => unknown)
  } catch {
    const [, name] = LEADING_ZERO.exec(body) ?? []
    throw new UnreadableForm(name ? `${name}: a number in JSON begins with no 0` : NOT_FLAT)
  }
  // Bytes that are not UTF-8 have become U+FFFD.
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given)
  if (!isObject || body.includes('\uFFFD')) throw new UnreadableForm(NOT_FLAT)
  const params: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(given as object)) {
    if (typeof value === 'string') params[name] = value
    else if (value !== null) throw new UnreadableForm(NOT_FLAT)
  }
  const repeated = namesTwiceIn(body)
  for (const name of repeated) delete params[name]
  return { params, repeated, from: 'json' }
}

const asTravelled = (_name: string, value: unknown, { source }: { source?: string }): unknown =>
  typeof value === 'number' || typeof value === 'boolean' ? source : value

/** For a flat object that is known to be JSON: there a text before a colon is a name. */
function namesTwiceIn(body: string): string[] {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const [, text = '', colon] of body.matchAll(TEXT)) {
    if (colon === undefined) continue
    const name: string = JSON.parse(text)
    if (seen.has(name)) twice.add(name)
    seen.add(name)
  }
  return [...twice]
}

/** Bytes that are not UTF-8 have become U+FFFD. `parse` alone would accept both as they look. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return !text.includes('\uFFFD')
  } catch {
    return false
  }
}
