import type { Dialect } from '../dialect/dialect.ts'

/** The parameters of a request in the contract's names. In JSON a bigint is a number, a boolean a literal. */
export type Params = ReadonlyMap<string, Param>
type Param = string | bigint | boolean

/** One request as it goes on the wire; always a POST. */
export type WireRequest = { path: string; contentType: string; body: string }

/** The parameters of a request without those that are not given: a program without types may leave one out. */
export const params = (entries: readonly (readonly [string, Param | null | undefined])[]): Params =>
  new Map(entries.filter((entry): entry is [string, Param] => (entry[1] ?? null) !== null))

/** Puts parameters, the signature among them, where the dialect wants them. */
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

/** A space becomes %20 and not "+": every decoder reads it as a space. */
function urlEncode(all: Params): string {
  let text = ''
  for (const [name, value] of all) {
    text += `${text === '' ? '' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`
  }
  return text
}

/** Written by hand because JSON.stringify knows no bigint. */
const jsonEncode = (all: Params): string =>
  `{${[...all].map(([name, value]) => `${JSON.stringify(name)}:${typeof value === 'string' ? JSON.stringify(value) : value}`).join(',')}}`
