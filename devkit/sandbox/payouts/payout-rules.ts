import type { Params } from '../wire/form.ts'
import {
  check,
  checkEither,
  matches,
  NOTIFY_URL,
  ORDER,
  orderNumber,
  REQ_TIME,
  type Rule,
  type RuleRefusal,
  required,
} from '../wire/rules.ts'

const ACCOUNT_NO = /^[A-Za-z0-9]{5,35}$/
const IFSC = /^[A-Z]{4}0[A-Z0-9]{6}$/
const VPA = /^[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}$/

/** Gateway contract, "Create payout order" and "Limits". */
const APPLY: readonly Rule[] = [
  ...ORDER,
  required('accountNo', 'ACCOUNT_NO_INVALID', 'must be 5 to 35 letters and digits', matches(ACCOUNT_NO)),
  required('accountBankCode', 'BANK_CODE_INVALID', 'must be exactly BANK', (value) => value === 'BANK'),
  NOTIFY_URL,
]

/** Gateway contract, "Query payout order". */
const QUERY: readonly Rule[] = [orderNumber('mchOrderNo'), orderNumber('agentpayOrderId')]

/** The first rule that an apply breaks, or undefined. */
export const checkApply = (params: Params): RuleRefusal | undefined =>
  check(params, APPLY) ?? checkExtra(params.extra)

/** The first rule that a payout query breaks, or undefined. */
export const checkPayoutQuery = (params: Params): RuleRefusal | undefined =>
  checkEither(params, 'mchOrderNo', 'agentpayOrderId') ?? check(params, QUERY) ?? checkTime(params)

/** Without its time a query may be meant for a payin: the two share a path. */
const checkTime = (params: Params): RuleRefusal | undefined =>
  params.reqTime
    ? check(params, [REQ_TIME])
    : {
        retCode: REQ_TIME.retCode,
        retMsg: 'reqTime: is required of a payout query; a payin query is known by its executeNotify',
      }

function checkExtra(extra = ''): RuleRefusal | undefined {
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

/** The IFSC or VPA in the JSON text of `extra`. */
export function extraValue(extra: string): string | undefined {
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
