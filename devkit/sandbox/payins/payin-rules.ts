import type { Params } from '../wire/form.ts'
import {
  check,
  checkEither,
  isHttpUrl,
  NOTIFY_URL,
  ORDER,
  optional,
  orderNumber,
  type Rule,
  type RuleRefusal,
  required,
  UTR,
} from '../wire/rules.ts'

/** Gateway contract, "Create payin order" and "Limits". */
const CREATE: readonly Rule[] = [
  ...ORDER,
  NOTIFY_URL,
  optional('returnUrl', 'RETURN_URL_INVALID', 'must be an http or https URL', isHttpUrl),
]

/** Gateway contract, "Query payin order". */
const QUERY: readonly Rule[] = [
  orderNumber('mchOrderNo'),
  orderNumber('payOrderId'),
  required(
    'executeNotify',
    'EXECUTE_NOTIFY_INVALID',
    'must be true or false',
    (value) => value === 'true' || value === 'false',
  ),
]

/** Gateway contract, "UTR recovery for a payin order". */
const RECOVER: readonly Rule[] = [{ ...orderNumber('payOrderId'), required: true }, UTR]

/** The first rule that a payin order breaks, or undefined. */
export const checkPayin = (params: Params): RuleRefusal | undefined => check(params, CREATE)

/** The first rule that a payin query breaks, or undefined. */
export const checkPayinQuery = (params: Params): RuleRefusal | undefined =>
  checkEither(params, 'mchOrderNo', 'payOrderId') ?? check(params, QUERY)

/** The first rule that a UTR recovery breaks, or undefined. */
export const checkRecovery = (params: Params): RuleRefusal | undefined => check(params, RECOVER)

/**
 * Payout and payin queries share a path. `reqTime` and `agentpayOrderId` belong to the payout's, `payOrderId` and
 * `executeNotify` to the payin's. A query with none of them is a payout query that lacks its reqTime.
 */
export const isPayinQuery = (params: Params): boolean =>
  !params.reqTime && !params.agentpayOrderId && Boolean(params.payOrderId || params.executeNotify)
