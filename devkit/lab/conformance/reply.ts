import { readMessage } from '../../../src/gateway/wire/values.ts'
import type { AnswerFields } from '../../../src/gateway/wire/verify-answer.ts'
import { cutText } from '../../../src/text/text.ts'

/** A server's reply to one request, whatever it contains. */
export type Reply = {
  httpStatus: number
  /** If the body is not a JSON object: empty, and every type is missing. */
  fields: AnswerFields
  /** The JSON type of each field. */
  types: ReadonlyMap<string, JsonType>
  sign: 'good' | 'bad' | 'unsigned'
}

export type JsonType = 'text' | 'integer' | 'number' | 'boolean' | 'object' | 'list' | 'null'

/** What a field may be. `absent`: it may be missing. */
export type Shape = Readonly<Record<string, readonly (JsonType | 'absent')[]>>

export const succeeded = ({ fields }: Reply): boolean => fields.get('retCode') === 'SUCCESS'

/** What a refusal says, without anything that could be a bank detail. */
export const codeOf = ({ httpStatus, fields }: Reply): string =>
  cutText(readMessage(fields.get('retCode'), []) ?? `HTTP ${httpStatus}`, 40)

/** Every field that is not what it must be, as text. */
export const misshapen = ({ types }: Reply, shape: Shape): string[] =>
  Object.entries(shape).flatMap(([name, allowed]) => {
    const type = types.get(name) ?? 'absent'
    return allowed.includes(type) ? [] : [`${name} is ${type}`]
  })

/** What a field that may be empty contains: its type, `empty` or `absent`. */
export const heldIn = ({ fields, types }: Reply, name: string): string =>
  fields.get(name) === '' ? 'empty' : (types.get(name) ?? 'absent')

/** The types of the fields in the text of a JSON object. */
export function typesIn(text: string, fields: AnswerFields): ReadonlyMap<string, JsonType> {
  const parsed = Object.entries(JSON.parse(text))
  return new Map(parsed.map(([name, value]) => [name, typeOf(value, fields.get(name))]))
}

/** `travelled`: a number as it was written, because the contract does not count 1e2 as an integer. */
function typeOf(value: unknown, travelled: string | null | undefined): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  switch (typeof value) {
    case 'string':
      return 'text'
    case 'number':
      return /^-?\d+$/.test(travelled ?? '') ? 'integer' : 'number'
    case 'boolean':
      return 'boolean'
    default:
      return 'object'
  }
}
