import type { Refusal } from './rules.ts'
import { type Signable, sign } from './sign.ts'

/** The JSON text of an answer with its `sign` last. An amount must be a safe integer. */
export function signedAnswer(fields: Signable, key: string): string {
  return JSON.stringify({ ...fields, sign: sign(fields, key) }, integers)
}

/** The JSON text of an answer that carries no `sign`: every answer to a balance query. */
export const unsignedAnswer = (fields: Signable): string => JSON.stringify(fields, integers)

/** The answer to somebody whose key nobody knows: `sign` is there, and empty. */
export const answerToStranger = (refusal: Refusal): string => JSON.stringify({ ...refusal, sign: '' })

function integers(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value
}
