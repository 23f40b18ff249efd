import type { OrderReport } from '../payout/evidence.ts'
import type { Dialect } from './dialect.ts'
import { redactReceived } from './exchange.ts'
import { readOrderReport } from './order-report.ts'
import { verify } from './sign.ts'

/**
 * What a callback is. `verified`: signed by the gateway, so it is evidence, even where it names no order of
 * ours. `malformed`: not even one reading of it exists; `why` is a stable word.
 */
export type ParsedCallback =
  | { kind: 'verified'; report: OrderReport }
  | { kind: 'bad-signature' }
  | { kind: 'malformed'; why: Malformed }

type Malformed =
  | 'empty'
  | 'too-long'
  | 'too-many-parameters'
  | 'unnamed-parameter'
  | 'repeated-parameter'
  | 'bad-encoding'

const MAX_LENGTH = 8_192
const MAX_PARAMETERS = 64

/**
 * Reads a payout callback (gateway contract, "Payout callback") from the query string as it came, without
 * its "?". The signature is checked over all parameters as received, percent-decoded once. Some senders
 * write a space as "+" and some mean a plus: both readings are tried before a signature is called wrong, and
 * the one that was signed is the one that counts.
 */
export function parsePayoutCallback(
  rawQueryString: string,
  dialect: Pick<Dialect, 'sign'>,
  key: string,
): ParsedCallback {
  if (rawQueryString === '') return malformed('empty')
  if (rawQueryString.length > MAX_LENGTH) return malformed('too-long')
  const readings = rawQueryString.includes('+') ? [asForm, asUri] : [asUri]
  for (const decode of readings) {
    const fields = parse(rawQueryString, decode)
    if (typeof fields === 'string') return malformed(fields)
    if (verify(fields, key, dialect.sign, 'callbacks') !== 'good') continue
    return { kind: 'verified', report: readOrderReport(fields, { request: redactCallback(fields) }) }
  }
  return { kind: 'bad-signature' }
}

const malformed = (why: Malformed): ParsedCallback => ({ kind: 'malformed', why })

/** A Map, so that `__proto__` is a name like any other. */
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

/** Throws on a percent sign that begins no byte, and on bytes that are no UTF-8. */
const asUri = (text: string): string => (text.includes('%') ? decodeURIComponent(text) : text)
const asForm = (text: string): string => asUri(text.replaceAll('+', ' '))

/** No parameter of a callback is null. */
const redactCallback = (fields: ReadonlyMap<string, string>) =>
  redactReceived(fields, []) as Record<string, string>
