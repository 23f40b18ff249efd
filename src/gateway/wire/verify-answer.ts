import type { NotSentReason, UnknownReason } from '../../domain/gateway-answers.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readJsonFields } from './json-fields.ts'
import { type SignRules, verify } from './sign.ts'

/** The fields of an answer, each as it travelled. */
export type AnswerFields = ReadonlyMap<string, string | null>

/** The result of one call, before its meaning: the gateway vouches for an `answer`. */
export type VerifiedAnswer =
  | { kind: 'not-sent'; reason: NotSentReason }
  | { kind: 'unknown'; reason: UnknownReason }
  | { kind: 'answer'; retCode: string; fields: AnswerFields }

/** Whether answers must carry a signature: all of them, or (balance; gateway contract, "Authentication") none. */
export type Signed = 'required' | 'optional'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The body's text and fields; each null if unreadable. */
export function readBody(sent: SentRequest): { text: string | null; fields: AnswerFields | null } {
  if (sent.kind !== 'answered') return { text: null, fields: null }
  try {
    const text = decoder.decode(sent.body)
    return { text, fields: readJsonFields(text) }
  } catch {
    return { text: sent.body.toString('latin1'), fields: null }
  }
}

/**
 * Whether to trust an answer. Anything but HTTP 200 with a readable, correctly signed body leaves the result unknown, whatever it
 * says. A signature that is present must be valid, even if none is required.
 */
export function verifyAnswer(
  sent: SentRequest,
  fields: AnswerFields | null,
  key: string,
  rules: SignRules,
  signed: Signed,
): VerifiedAnswer {
  if (sent.kind === 'not-sent') return { kind: 'not-sent', reason: sent.reason }
  if (sent.kind === 'lost') return unknown(sent.reason)
  if (sent.httpStatus !== 200) return unknown('http-status')
  const retCode = fields?.get('retCode')
  if (!fields || !retCode) return unknown('unparsable')
  switch (verify(fields, key, rules, 'answers')) {
    case 'bad':
      return unknown('bad-signature')
    case 'unsigned': {
      const acceptable = signed === 'optional' || (retCode !== 'SUCCESS' && !rules.failures)
      return acceptable ? { kind: 'answer', retCode, fields } : unknown('unsigned')
    }
    case 'good':
      return { kind: 'answer', retCode, fields }
  }
}

const unknown = (reason: UnknownReason): VerifiedAnswer => ({ kind: 'unknown', reason })
