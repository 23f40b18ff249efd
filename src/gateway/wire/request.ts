import type { Dialect } from '../dialect/dialect.ts'

/** The parameters of a request in the contract's names. In JSON a bigint is a number, a boolean a literal. */
export type Params = ReadonlyMap<string, Param>
type Param = string | bigint | boolean

/** One request as it travels; always a POST. */
export type WireRequest = { path: string; contentType: string; body: string }

/** The parameters of a request without the missing ones: an untyped program may leave one out. */
export const params = (entries: readonly (readonly [string, Param | null | undefined])[]): Params =>
  new Map(entries.filter((entry): entry is [string, Param] => (entry[1] ?? null) !== null))

/** Puts the parameters, with the signature, where the dialect wants them. */
export function encode(all: Params, path: string, body: Dialect['body']): WireRequest {
  switch (body) {
    case 'form':
      return { path, contentType: 'application/x-www-form-urlencoded', body: urlEncode(all) }
    case 'json':
      return { path, contentType: 'application/json', body: jsonEncode(all) }
    case 'query':
      return { path: `${path}?${urlEncode(all)}`, contentType: 'application/x-www-form-urlencoded', body: '' }
  }
}

/** Writes a space as %20 instead of "+": every decoder reads that as a space. */
function urlEncode(all: Params): string {
  let text = ''
  for (const [name, value] of all) {
    text += `${text === '' ? '' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`
  }
  return text
}

/** Written by hand because JSON.stringify cannot write a bigint. */
const jsonEncode = (all: Params): string =>
  `{${[...all].map(([name, value]) => `${JSON.stringify(name)}:${typeof value === 'string' ? JSON.stringify(value) : value}`).join(',')}}`
