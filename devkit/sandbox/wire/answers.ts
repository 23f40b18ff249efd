import type { SignRules } from './dialect.ts'
import type { RuleRefusal } from './rules.ts'
import { type Signable, sign } from './sign.ts'

/** What goes back on the wire: an answer, or one of the faults that are none. */
export type GatewayReply = { status: number; body: string } | 'hang' | 'reset'

/**
 * The JSON text of an answer with its `sign` last, which a failure lacks in some dialects. An amount must be a
 * safe integer.
 */
export function signedAnswer(fields: Signable, key: string, rules: SignRules): string {
  if (fields.retCode !== 'SUCCESS' && !rules.failures) return unsignedAnswer(fields)
  return JSON.stringify({ ...fields, sign: sign(fields, key, rules, 'answers') }, integers)
}

/** The JSON text of an answer that carries no `sign`: every answer to a balance query. */
export const unsignedAnswer = (fields: Signable): string => JSON.stringify(fields, integers)

/** The answer to somebody whose key nobody knows: `sign` is there, and empty. */
export const answerToStranger = (refusal: RuleRefusal): string => JSON.stringify({ ...refusal, sign: '' })

function integers(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value
}
