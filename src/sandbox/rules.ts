import type { Params } from './form.ts'

/** Why a request was not taken. The message begins with the field's name and never repeats its value. */
export type Refusal = { retCode: string; retMsg: string }

type Rule = {
  name: string
  required: boolean
  retCode: string
  wants: string
  holds: (value: string) => boolean
}

const matches = (pattern: RegExp) => (value: string) => pattern.test(value)
const characters = (min: number, max: number) => (value: string) => {
  const length = [...value].length
  return length >= min && length <= max
}

/** Fifteen digits: every amount stays an exact integer in JSON. */
const AMOUNT = /^[1-9][0-9]{0,12}00$/
const PHONE = /^[6-9][0-9]{9}$/
const ACCOUNT_NO = /^[A-Za-z0-9]{5,35}$/
const IFSC = /^[A-Z]{4}0[A-Z0-9]{6}$/
const VPA = /^[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}$/

const required = (name: string, retCode: string, wants: string, holds: Rule['holds']): Rule => ({
  name,
  required: true,
  retCode,
  wants,
  holds,
})
const optional = (...rule: Parameters<typeof required>): Rule => ({ ...required(...rule), required: false })

/** Gateway contract, "Create payout order" and "Limits". */
const APPLY: readonly Rule[] = [
  required('mchOrderNo', 'ORDER_NO_INVALID', 'must be 1 to 30 characters', characters(1, 30)),
  required(
    'amount',
    'AMOUNT_INVALID',
    'must be a positive integer of paise, a multiple of 100',
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
  required('accountNo', 'ACCOUNT_NO_INVALID', 'must be 5 to 35 letters and digits', matches(ACCOUNT_NO)),
  required('accountBankCode', 'BANK_CODE_INVALID', 'must be exactly BANK', (value) => value === 'BANK'),
  required('notifyUrl', 'NOTIFY_URL_INVALID', 'must be an http or https URL', isHttpUrl),
]

const ORDER_NUMBERS: readonly Rule[] = [
  optional('mchOrderNo', 'ORDER_NO_INVALID', 'must be at most 30 characters', characters(1, 30)),
  optional('agentpayOrderId', 'ORDER_NO_INVALID', 'must be at most 30 characters', characters(1, 30)),
]

const REQ_TIME = required(
  'reqTime',
  'REQ_TIME_INVALID',
  'must be a time written yyyyMMddHHmmss',
  isCompactTime,
)

/** The first rule that an apply breaks, or undefined. */
export const checkApply = (params: Params): Refusal | undefined =>
  check(params, APPLY) ?? checkExtra(params.extra)

/** The first rule that a payout query breaks, or undefined. */
export function checkPayoutQuery(params: Params): Refusal | undefined {
  if (!params.mchOrderNo && !params.agentpayOrderId) {
    return { retCode: 'PARAM_ERROR', retMsg: 'mchOrderNo or agentpayOrderId: one of the two is required' }
  }
  return check(params, ORDER_NUMBERS) ?? check(params, [REQ_TIME])
}

/** The first rule that a balance query breaks, or undefined. */
export const checkBalanceQuery = (params: Params): Refusal | undefined => check(params, [REQ_TIME])

function check(params: Params, rules: readonly Rule[]): Refusal | undefined {
  for (const { name, required, retCode, wants, holds } of rules) {
    // An empty parameter takes no part in the signature, so it counts as not given.
    const value = params[name] ?? ''
    if (value === '' ? required : !holds(value)) {
      return { retCode, retMsg: value === '' ? `${name}: is required` : `${name}: ${wants}` }
    }
  }
  return undefined
}

function checkExtra(extra = ''): Refusal | undefined {
  const value = extraValue(extra)
  if (value === undefined) {
    const wants = 'must be a JSON object with the one key "value", a string'
    return { retCode: 'EXTRA_INVALID', retMsg: extra === '' ? 'extra: is required' : `extra: ${wants}` }
  }
  if (value.includes('@')) {
    return VPA.test(value) ? undefined : { retCode: 'VPA_INVALID', retMsg: 'extra: its value is not a VPA' }
  }
  return IFSC.test(value) ? undefined : { retCode: 'IFSC_INVALID', retMsg: 'extra: its value is not an IFSC' }
}

function extraValue(extra: string): string | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(extra)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
  const entries = Object.entries(parsed)
  const [name, value] = entries[0] ?? []
  return entries.length === 1 && name === 'value' && typeof value === 'string' ? value : undefined
}

/** To the letter of the contract: an @, a dot anywhere, two characters before the @. */
function isEmail(value: string): boolean {
  return value.indexOf('@') >= 2 && value.includes('.')
}

function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value)
}

function isCompactTime(value: string): boolean {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(value)
  if (!parts) return false
  const [, year, month, day, hour, minute, second] = parts
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const time = Date.parse(iso)
  // Date.parse takes 30 February for 2 March.
  return !Number.isNaN(time) && new Date(time).toISOString() === iso
}
