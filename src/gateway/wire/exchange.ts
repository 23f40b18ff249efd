import type { Exchange } from '../../domain/evidence.ts'
import { hideKnown } from '../../domain/hide-known.ts'
import { maskAccount, maskVpa, scrub } from '../../domain/mask.ts'
import { cutText } from '../../text/text.ts'
import type { SentRequest } from '../transport/transport.ts'
import type { Params } from './request.ts'

type Received = ReadonlyMap<string, string | null>

/** Fields of the contract that are the evidence itself: kept unmasked if they contain a number. */
const FIGURES = new Set([
  ...['amount', 'fee', 'status', 'notifyStatus', 'reqTime', 'paySuccTime'],
  ...['frozenAmount', 'availableAmount', 'pendingAmount', 'unsettledAmount'],
])
/** The same for names and numbers of things, without a space: kept, but for a bank detail that strayed into them. */
const NAMES = new Set([
  ...['mchId', 'mchOrderNo', 'agentpayOrderId', 'payOrderId', 'channelPayNo', 'busNo'],
  ...['retCode', 'currency', 'accountBankCode', 'notifyUrl', 'returnUrl'],
])
/** A VPA or an e-mail address, which is no name of anything. */
const AT = /@|%(?:25){0,2}40|&#64;|&#x40;|\\u0040/i
/** Digits. */
const LONG = 9
const MAX_VALUE = 500
/** Far above the contract's dozen; further fields that a gateway adds are not worth keeping for ever. */
const MAX_FIELDS = 40

/**
 * One call, safe to keep for ever. `text` is the answer's body and `fields` its fields, null if unreadable. `secrets` are the
 * bank details of the call's payout.
 */
export function exchangeOf(
  request: Params,
  sent: SentRequest,
  text: string | null,
  fields: Received | null,
  secrets: readonly string[],
): Exchange {
  const exchange: Exchange = { request: redactRequest(request, secrets), tookMs: sent.tookMs }
  switch (sent.kind) {
    case 'not-sent':
      return { ...exchange, note: sent.code }
    case 'lost':
      return {
        ...exchange,
        note: sent.code,
        ...(sent.httpStatus === null ? {} : { httpStatus: sent.httpStatus }),
      }
    case 'answered': {
      const response = fields ? redactReceived(fields, secrets) : { body: cut(text ?? '', secrets) }
      return { ...exchange, httpStatus: sent.httpStatus, response }
    }
  }
}

/** Our request: bank details masked, free text scrubbed, no signature. */
export const redactRequest = (request: Params, secrets: readonly string[]): Record<string, string> =>
  Object.fromEntries([...request].map(([name, value]) => [name, redact(name, String(value), secrets)]))

/** The same for an answer or a callback of the gateway, cut to a size. Nulls stay nulls. */
export function redactReceived(fields: Received, secrets: readonly string[]): Record<string, string | null> {
  const kept = [...fields].filter(([name]) => name !== 'sign').slice(0, MAX_FIELDS)
  return Object.fromEntries(
    kept.map(([name, value]) => [
      FIGURES.has(name) || NAMES.has(name) ? name : cut(name, secrets),
      value === null ? null : redact(name, value, secrets),
    ]),
  )
}

function redact(name: string, value: string, secrets: readonly string[]): string {
  if (FIGURES.has(name) && /^[0-9]{1,18}$/.test(value) && !holds(value, secrets)) return value
  if (NAMES.has(name) && !/\s/u.test(value) && !AT.test(value))
    return cutText(without(secrets, value), MAX_VALUE)
  switch (name) {
    case 'accountNo':
    case 'payerEmail':
      return cutText(without(secrets, maskVpa(value)), MAX_VALUE)
    case 'phoneNumber':
      return maskAccount(value)
    case 'accountName':
      return '••••'
    case 'extra':
      return cutText(without(secrets, maskVpa(/^\{"value":"([^"]*)"\}$/.exec(value)?.[1] ?? '')), MAX_VALUE)
    default:
      return cut(value, secrets)
  }
}

/** Also cut before scrubbing: the far end is never kept, and scrubbing it costs time. */
const cut = (text: string, secrets: readonly string[]): string =>
  cutText(scrub(cutText(text, 4 * MAX_VALUE), secrets), MAX_VALUE)

/** A figure may contain the digits of a short account number by chance, but not those of a long one. */
const holds = (figure: string, secrets: readonly string[]): boolean =>
  secrets.some((secret) => secret === figure || (secret.length >= LONG && figure.includes(secret)))

/** A short name may be part of an order number by chance; an account number has at least 5 characters. */
const without = (secrets: readonly string[], text: string): string => hideKnown(text, secrets, 5)
