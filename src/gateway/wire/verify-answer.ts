import type { NotSentReason, UnknownReason } from '../../domain/gateway-answers.ts'
import type { SentRequest } from '../transport/transport.ts'
import { readJsonFields } from './json-fields.ts'
import { type SignRules, verify } from './sign.ts'

/** An answer's fields, each as it travelled. */
export type AnswerFields = ReadonlyMap<string, string | null>

/** What one call came to, before its meaning: an `answer` is one that the gateway stands by. */
export type VerifiedAnswer =
  | { kind: 'not-sent'; reason: NotSentReason }
  | { kind: 'unknown'; reason: UnknownReason }
  | { kind: 'answer'; retCode: string; fields: AnswerFields }

/** Whether answers must carry a signature: all of them, or (balance; gateway contract, "Authentication") none. */
export type Signed = 'required' | 'optional'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The body's text and fields; each null where it cannot be read. */
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
 * Whether an answer can be believed. Anything but HTTP 200 with a readable, well-signed body leaves us
 * without knowledge, whatever it says. A signature that is there must be good, also where none is needed.
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
