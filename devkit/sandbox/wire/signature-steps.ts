import { masked } from '../mask.ts'
import type { Merchant } from '../state/merchants.ts'
import type { SignRules, Traffic } from './dialect.ts'
import type { Params } from './form.ts'
import { isSignedBy, type Signable, sign, textToSign } from './sign.ts'

/** How a signature is computed, for people to read. Never contains a key. */
export type Steps = {
  /** Every parameter, and why it is left out if it is not signed. */
  fields: { name: string; value: string; leftOut?: string }[]
  /** The `name=value&` strings in signing order, with `key=…` at the end. */
  text: string
  /** The algorithm, and how its digits are written. */
  hash: string
  given: string
  verdict: string
}

/** How the signature of a request is checked. Bank details are masked for display, not in the signed text. */
export function requestSteps(params: Params, { keys, dialect }: Merchant): Steps {
  const { sign: given = '' } = params
  const at = keys.findIndex((key) => isSignedBy(params, key, dialect.sign, given))
  const expected = sign(params, keys[0], dialect.sign, 'requests')
  const verdict =
    at === -1
      ? `It is wrong: with the newest key it would be ${expected}. ${guess(params, keys)}`
      : `It is good, with ${keyName(at)}.`
  return { ...stepsOf(masked(params), dialect.sign, 'requests'), given, verdict }
}

/** How the signature of an answer or a callback was computed. */
export function ownSteps(fields: Signable, merchant: Merchant, traffic: 'answers' | 'callbacks'): Steps {
  const { keys, dialect } = merchant
  const given = String(fields.sign ?? '')
  const at = keys.findIndex((key) => sign(fields, key, dialect.sign, traffic) === given)
  const made = at === -1 ? 'It was made wrong on purpose.' : `It was made with ${keyName(at)}.`
  return { ...stepsOf(fields, dialect.sign, traffic), given, verdict: given === '' ? 'There is none.' : made }
}

const keyName = (at: number): string => (at === 0 ? 'the newest key' : `older key ${at}`)

function stepsOf(fields: Signable, rules: SignRules, traffic: Traffic): Omit<Steps, 'given' | 'verdict'> {
  const { algorithm, hexCase, keySuffix, emptyFields } = rules
  const why = (name: string, value: Signable[string]) =>
    name === 'sign'
      ? 'the signature itself'
      : value === null
        ? 'null'
        : value === '' && !emptyFields[traffic]
          ? 'empty'
          : undefined
  return {
    fields: Object.entries(fields).map(([name, value]) => {
      const leftOut = why(name, value)
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      return { name, value: text, ...(leftOut ? { leftOut } : {}) }
    }),
    text: `${textToSign(fields, rules, traffic)}${keySuffix}=…`,
    hash: `${algorithm === 'md5' ? 'MD5' : 'HMAC-SHA256 with the key'} over UTF-8, ${hexCase}-case hex`,
  }
}

/** Describes the family's variant in which a wrong signature would be right. */
function guess(params: Params, keys: readonly string[]): string {
  const { sign: given = '' } = params
  if (given === '') return 'The request has none.'
  const found = VARIANTS.find((rules) => keys.some((key) => isSignedBy(params, key, rules, given)))
  if (!found) return 'No other variant of the family gives it either: another key, or other values.'
  const { algorithm, sort, hexCase, keySuffix, emptyFields } = found
  const empty = emptyFields.requests ? 'signed' : 'left out'
  return `It would be right with algorithm ${algorithm}, sort ${sort}, hexCase ${hexCase}, keySuffix ${keySuffix}, empty fields ${empty}.`
}

const VARIANTS: SignRules[] = []
for (const algorithm of ['md5', 'hmac-sha256'] as const)
  for (const hexCase of ['upper', 'lower'] as const)
    for (const keySuffix of ['key', 'appSecret'] as const)
      for (const sort of ['whole-ignoring-case', 'name'] as const)
        for (const requests of [false, true]) {
          const emptyFields = { requests, answers: false, callbacks: false }
          VARIANTS.push({ algorithm, hexCase, keySuffix, sort, emptyFields, failures: true })
        }
