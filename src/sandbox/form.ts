import { parse } from 'node:querystring'

/** The parameters of one request. No prototype: any name is only a name. */
export type Params = Readonly<Record<string, string | undefined>>

/** A form body, decoded. A parameter that came twice is in `repeated` only: nobody can say which was meant. */
export type Form = { params: Params; repeated: readonly string[] }

/** Decodes application/x-www-form-urlencoded. */
export function parseForm(body: string): Form {
  const params = parse(body, '&', '=', { maxKeys: 0 })
  const repeated: string[] = []
  for (const name in params) {
    if (!Array.isArray(params[name])) continue
    repeated.push(name)
    delete params[name]
  }
  return { params: params as Record<string, string>, repeated }
}
