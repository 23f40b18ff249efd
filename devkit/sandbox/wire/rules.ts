import type { Params } from './form.ts'

/** Why a request was refused. The message begins with the field's name and never repeats its value. */
export type RuleRefusal = { retCode: string; retMsg: string }

/** What a parameter must be. */
export type Rule = {
  name: string
  required: boolean
  retCode: string
  wants: string
  holds: (value: string) => boolean
}

export const matches = (pattern: RegExp) => (value: string) => pattern.test(value)
const characters = (min: number, max: number) => (value: string) => {
  const length = [...value].length
  return length >= min && length <= max
}

export const required = (name: string, retCode: string, wants: string, holds: Rule['holds']): Rule => ({
  name,
  required: true,
  retCode,
  wants,
  holds,
})
export const optional = (...rule: Parameters<typeof required>): Rule => ({
  ...required(...rule),
  required: false,
})

/** Fifteen digits: every amount stays an exact integer in JSON. */
const AMOUNT = /^[1-9][0-9]{0,12}00$/
const PHONE = /^[6-9][0-9]{9}$/

/** The fields that both kinds of orders begin with (gateway contract, "Limits"). */
export const ORDER: readonly Rule[] = [
  required('mchOrderNo', 'ORDER_NO_INVALID', 'must be 1 to 30 characters', characters(1, 30)),
  required(
    'amount',
    'AMOUNT_INVALID',
    'must be a positive integer of paise, a multiple of 100, of at most 15 digits without zeros before it',
    matches(AMOUNT),
  ),
  required('currency', 'CURRENCY_INVALID', 'must be INR', (value) => value === 'INR'),
  optional('phoneNumber', 'PHONE_INVALID', 'must be 10 digits, the first 6 to 9', matches(PHONE)),
  optional(
    'payerEmail',
    'EMAIL_INVALID',
    'must contain @ and a dot, with at least 2 characters before the @',
    isEmail,
  ),
  optional('accountName', 'NAME_INVALID', 'must be 2 to 48 characters', characters(2, 48)),
]

export const NOTIFY_URL = required(
  'notifyUrl',
  'NOTIFY_URL_INVALID',
  'must be an http or https URL',
  isHttpUrl,
)

/** An order number in a query: String(30). */
export const orderNumber = (name: string): Rule =>
  optional(name, 'ORDER_NO_INVALID', 'must be at most 30 characters', characters(1, 30))

/** String(30), in any form: the bank decides what a UTR looks like. */
export const UTR = required('channelPayNo', 'UTR_INVALID', 'must be 1 to 30 characters', characters(1, 30))

export const REQ_TIME = required(
  'reqTime',
  'REQ_TIME_INVALID',
  'must be a time written yyyyMMddHHmmss',
  isCompactTime,
)

/** The first of `rules` that the parameters break, or undefined. */
export function check(params: Params, rules: readonly Rule[]): RuleRefusal | undefined {
  for (const { name, required, retCode, wants, holds } of rules) {
    // The signature ignores an empty parameter, so it counts as absent.
    const value = params[name] ?? ''
    if (value === '' ? required : !holds(value)) {
      return { retCode, retMsg: value === '' ? `${name}: is required` : `${name}: ${wants}` }
    }
  }
  return undefined
}

/** A query must name its order by one of two numbers. */
export const checkEither = (params: Params, one: string, other: string): RuleRefusal | undefined =>
  params[one] || params[other]
    ? undefined
    : { retCode: 'PARAM_ERROR', retMsg: `${one} or ${other}: one of the two is required` }

/** Exactly as in the contract: an @, a dot anywhere, two characters before the @. */
function isEmail(value: string): boolean {
  return value.indexOf('@') >= 2 && value.includes('.')
}

export function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value)
}

function isCompactTime(value: string): boolean {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(value)
  if (!parts) return false
  const [, year, month, day, hour, minute, second] = parts
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const time = Date.parse(iso)
  // Date.parse reads 30 February as 2 March.
  return !Number.isNaN(time) && new Date(time).toISOString() === iso
}
