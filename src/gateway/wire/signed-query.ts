import type { Doubt } from '../../domain/evidence.ts'
import { unsafeTextIn } from '../../domain/unsafe-text.ts'
import { type SignRules, verify } from './sign.ts'
import { readIdentifier } from './values.ts'

/** Why a query string has no reading at all. Stable words. */
export type Malformed =
  | 'empty'
  | 'too-long'
  | 'too-many-parameters'
  | 'unnamed-parameter'
  | 'repeated-parameter'
  | 'bad-encoding'

/** The decoded parameters of a query string, with `sign` if it has one. */
export type SignedParameters = ReadonlyMap<string, string>

const MAX_LENGTH = 8_192
const MAX_PARAMETERS = 64

/**
 * Reads a callback from its query string without the "?". Checks the signature over all received parameters, percent-decoded
 * once. Some senders write a space as "+" and some mean a plus, so it tries both readings before it calls a signature wrong; the
 * signed one counts. `fields` leaves out unsigned parameters that the contract does not name.
 */
export function readSignedQuery(
  rawQueryString: string,
  rules: SignRules,
  key: string,
):
  | { kind: 'verified'; fields: SignedParameters; doubt: Doubt | null }
  | { kind: 'bad-signature' }
  | { kind: 'malformed'; why: Malformed } {
  for (const fields of readingsOf(rawQueryString)) {
    if (typeof fields === 'string') return { kind: 'malformed', why: fields }
    if (verify(fields, key, rules, 'callbacks') === 'good') {
      const signed = new Map([...fields].filter(([name, value]) => !isUnsigned(name, value, rules)))
      return { kind: 'verified', fields: signed, doubt: doubtAbout(signed, fields) }
    }
  }
  return { kind: 'bad-signature' }
}

/** The form of every name in the contract. */
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
/** Fields that only requests carry; each of our requests that could be read as a result has one of them. */
const OF_REQUESTS = ['notifyUrl', 'returnUrl', 'reqTime', 'executeNotify']

/** The fields of callbacks (gateway contract, "Events"). */
const OF_CALLBACKS = new Set([
  ...['amount', 'mchOrderNo', 'channelPayNo', 'status', 'errorMessage', 'sign'],
  ...['agentpayOrderId', 'fee'],
  ...['payOrderId', 'paySuccTime', 'mchId', 'backType', 'channelCode'],
])

/** If signatures leave out empty parameters, anybody can add some. */
const isUnsigned = (name: string, value: string, { emptyFields }: SignRules): boolean =>
  value === '' && !emptyFields.callbacks && !OF_CALLBACKS.has(name)

function doubtAbout(signed: SignedParameters, all: SignedParameters): Doubt | null {
  if (isOfRequest(signed)) return 'of-a-request'
  if (isAmbiguous(signed)) return 'several-readings'
  return signed.size < all.size ? 'unsigned-parameters' : null
}

/**
 * Whether the signed text has another reading: nothing in it is escaped, so a value with "&" or "=" may have been two fields.
 * Such a callback ends nothing.
 */
const isAmbiguous = (fields: SignedParameters): boolean =>
  [...fields].some(([name, value]) => !NAME.test(name) || unsafeTextIn(value) !== null)

/** Whether it carries fields that only requests carry, also inside a name or value that may have been several fields. */
const isOfRequest = (fields: SignedParameters): boolean =>
  [...fields].some(([field, value]) =>
    OF_REQUESTS.some(
      (name) =>
        field === name || value.includes(`${name}=`) || (!NAME.test(field) && field.includes(`${name}=`)),
    ),
  )

/** The order number in a callback that nobody has verified yet; null: there is none, or the string has no reading. */
export function orderNoIn(rawQueryString: string): string | null {
  const [first] = readingsOf(rawQueryString)
  return first === undefined || typeof first === 'string' ? null : readIdentifier(first.get('mchOrderNo'))
}

/** The readings of a query string: "+" as a space, then as a plus. A word says why a reading fails. */
export function readingsOf(rawQueryString: string): (SignedParameters | Malformed)[] {
  if (rawQueryString === '') return ['empty']
  if (rawQueryString.length > MAX_LENGTH) return ['too-long']
  const decoders = rawQueryString.includes('+') ? [asForm, asUri] : [asUri]
  return decoders.map((decode) => parse(rawQueryString, decode))
}

/** A Map, so that `__proto__` is an ordinary name. */
function parse(text: string, decode: (text: string) => string): Map<string, string> | Malformed {
  const fields = new Map<string, string>()
  const parameters = text.split('&', MAX_PARAMETERS + 1)
  if (parameters.length > MAX_PARAMETERS) return 'too-many-parameters'
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=')
    if (equals <= 0) return 'unnamed-parameter'
    let name: string
    let value: string
    try {
      name = decode(parameter.slice(0, equals))
      value = decode(parameter.slice(equals + 1))
    } catch {
      return 'bad-encoding'
    }
    if (fields.has(name)) return 'repeated-parameter'
    fields.set(name, value)
  }
  return fields
}

/** A percent sign that begins no byte stays itself: some senders encode nothing. Throws on bytes that are not UTF-8. */
const asUri = (text: string): string =>
  text.includes('%') ? decodeURIComponent(text.replaceAll(/%(?![0-9A-Fa-f]{2})/g, '%25')) : text
const asForm = (text: string): string => asUri(text.replaceAll('+', ' '))
