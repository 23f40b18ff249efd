import type { SignRules } from './dialect.ts'
import type { RuleRefusal } from './rules.ts'
import { type Signable, sign } from './sign.ts'

/** What goes back on the wire: an answer, or a fault instead of one. */
export type GatewayReply = { status: number; body: string } | 'hang' | 'reset'

/**
 * The JSON text of an answer with its `sign` last; failures lack it in some dialects. An amount must be a safe
 * integer.
 */
export function signedAnswer(fields: Signable, key: string, rules: SignRules): string {
  if (fields.retCode !== 'SUCCESS' && !rules.failures) return unsignedAnswer(fields)
  return JSON.stringify({ ...fields, sign: sign(fields, key, rules, 'answers') }, integers)
}

/** The JSON text of an answer without `sign`: every answer to a balance query. */
export const unsignedAnswer = (fields: Signable): string => JSON.stringify(fields, integers)

/** The answer to a caller whose key is unknown: `sign` is there, but empty. */
export const answerToStranger = (refusal: RuleRefusal): string => JSON.stringify({ ...refusal, sign: '' })

function integers(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value
}
