import type { Instant } from '../../src/platform/running/clock.ts'
import type { Payin } from './payins/payin.ts'
import { createdFields, payinFields, payOrderId, recoveredFields } from './payins/payin-fields.ts'
import type { PayinNotices } from './payins/payin-notices.ts'
import { checkPayin, checkPayinQuery, checkRecovery } from './payins/payin-rules.ts'
import type { PayinOutcome, Payins } from './payins/payins.ts'
import type { Order } from './payouts/order.ts'
import { queryFields, takenFields } from './payouts/order-fields.ts'
import { checkApply, checkPayoutQuery } from './payouts/payout-rules.ts'
import type { Payouts } from './payouts/payouts.ts'
import type { Books } from './state/books.ts'
import type { Merchant } from './state/merchants.ts'
import type { ResponseMode } from './test-accounts.ts'
import type { Params } from './wire/form.ts'
import { check, REQ_TIME, type RuleRefusal } from './wire/rules.ts'
import type { Signable } from './wire/sign.ts'

/** An operation's answer, and how to send it. `order`: the answer waits for the first callback of this order. */
export type Said = { fields: Signable; responseMode: ResponseMode; order?: Order }

/** Executes a well-signed request at `now`. Send its answer only after a commit. */
type Operation = (merchant: Merchant, params: Params, now: Instant) => Said

const PLAIN: ResponseMode = { kind: 'plain' }
export const NO_ORDER: RuleRefusal = {
  retCode: 'ORDER_NOT_FOUND',
  retMsg: 'no order of this merchant has this number',
}

const say = (fields: Signable): Said => ({ fields, responseMode: PLAIN })
export const refuse = (refusal: RuleRefusal): Said => say(refusal)

type OperationParts = {
  payouts: Payouts
  payins: Payins
  notices: Pick<PayinNotices, 'tellOnceMore'>
  books: Books
  /** The address of an order's checkout page. */
  payUrl: (payOrderId: string) => string
}

export type Operations = ReturnType<typeof createOperations>

/** The operations of the contract, by name. */
export function createOperations({ payouts, payins, notices, books, payUrl }: OperationParts) {
  /** Gateway contract, "Create payin order". */
  const createPayin: Operation = (merchant, params, now) => {
    const refusal = checkPayin(params)
    if (refusal) return refuse(refusal)
    return after(payins.create(merchant, params, now), (payin) =>
      createdFields(payin, merchant.mchId, payUrl(payOrderId(payin))),
    )
  }

  /** Gateway contract, "Query payin order". */
  const queryPayin: Operation = (merchant, params) => {
    const refusal = checkPayinQuery(params)
    if (refusal) return refuse(refusal)
    const payin = payins.find(merchant, params)
    if (!payin) return refuse(NO_ORDER)
    if (params.executeNotify === 'true') notices.tellOnceMore(payin)
    return say(payinFields(payin))
  }

  /** Gateway contract, "UTR recovery for a payin order". */
  const recoverPayin: Operation = (merchant, params, now) => {
    const refusal = checkRecovery(params)
    if (refusal) return refuse(refusal)
    const { payOrderId, channelPayNo = '' } = params
    const payin = payins.find(merchant, { payOrderId })
    if (!payin) return refuse(NO_ORDER)
    return after(payins.recover(merchant, payin, channelPayNo, now), recoveredFields)
  }

  /** Gateway contract, "Create payout order". */
  const apply: Operation = (merchant, params, now) => {
    const refusal = checkApply(params)
    if (refusal) return refuse(refusal)
    const applied = payouts.apply(merchant, params, now)
    switch (applied.kind) {
      case 'taken':
        return {
          fields: takenFields(applied.order),
          responseMode: applied.responseMode,
          ...(applied.responseMode.kind === 'after-callback' ? { order: applied.order } : {}),
        }
      case 'refused':
        return refuse(applied.refusal)
      case 'turned-away':
        return { fields: {}, responseMode: applied.responseMode }
    }
  }

  /** Gateway contract, "Query payout order". */
  const queryPayout: Operation = (merchant, params) => {
    const refusal = checkPayoutQuery(params)
    if (refusal) return refuse(refusal)
    const order = payouts.find(merchant, params)
    return order ? say(queryFields(order)) : refuse(NO_ORDER)
  }

  /** Gateway contract, "Balance query". */
  const queryBalance: Operation = (merchant, params) => {
    const refusal = check(params, [REQ_TIME])
    if (refusal) return refuse(refusal)
    const { available, frozen, pending, unsettled } = books.balances(merchant.id)
    return say({
      retCode: 'SUCCESS',
      retMsg: null,
      busNo: merchant.mchId,
      amount: available + frozen + pending + unsettled,
      frozenAmount: frozen,
      availableAmount: available,
      pendingAmount: pending,
      unsettledAmount: unsettled,
    })
  }

  return { createPayin, queryPayin, recoverPayin, apply, queryPayout, queryBalance }
}

const after = (outcome: PayinOutcome, fields: (payin: Payin) => Signable): Said =>
  outcome.kind === 'done' ? say(fields(outcome.payin)) : refuse(outcome.refusal)
