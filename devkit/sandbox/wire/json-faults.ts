import type { z } from 'zod'

/** The given value, or all of its faults in one line: by field, in words, without values. */
export type Given<T> = { ok: true; value: T } | { ok: false; faults: string }

/** Reads parsed JSON with `schema`. */
export function readGiven<T>(schema: z.ZodType<T>, json: unknown): Given<T> {
  const read = schema.safeParse(json, { error: wants })
  if (read.success) return { ok: true, value: read.data }
  return { ok: false, faults: read.error.issues.flatMap(told).join('; ') }
}

const told = (issue: z.core.$ZodIssue): string[] =>
  issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => `${nameOf([...issue.path, key])}: is not known here`)
    : [`${nameOf(issue.path)}: ${issue.message}`]

const nameOf = (path: readonly PropertyKey[]): string => path.join('.') || 'the whole'

const KINDS: { readonly [type: string]: string } = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a JSON object',
}

/** What a schema without its own message wants. */
function wants(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${KINDS[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return oneOf(issue.values)
    case 'invalid_union':
      return Array.isArray(issue.options) ? oneOf(issue.options) : undefined
    case 'too_small':
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${size(issue.minimum, issue.origin)}`
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${size(issue.maximum, issue.origin)}`
    default:
      return undefined
  }
}

const oneOf = (words: readonly unknown[]): string => `must be one of ${words.join(', ')}`

const size = (limit: number | bigint, origin: string): string =>
  origin === 'string' || origin === 'array' ? `${limit} in length` : `${limit}`
