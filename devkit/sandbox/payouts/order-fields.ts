import { platformNo, utrOf } from '../state/sequence.ts'
import type { CallbackVariant } from '../test-accounts.ts'
import type { Signable } from '../wire/sign.ts'
import { FAILED, type Order, PROCESSING, SUCCESS } from './order.ts'

const ERROR_MESSAGE = 'The beneficiary bank returned the transfer'

export const agentpayOrderId = (order: Pick<Order, 'id' | 'acceptedAt'>): string =>
  platformNo('AP', order.id, order.acceptedAt)

export const utr = (order: Order): string | null =>
  order.status === SUCCESS ? utrOf(order.id, order.acceptedAt) : null

/** The answer of apply for an accepted order (gateway contract, "Create payout order"). */
export const takenFields = (order: Order): Signable => ({
  retCode: 'SUCCESS',
  retMsg: 'accepted',
  agentpayOrderId: agentpayOrderId(order),
  fee: order.fee,
  extra: null,
  status: PROCESSING,
})

/** A query's answer about the order (gateway contract, "Query payout order"). */
export function queryFields(order: Order): Signable {
  return {
    retCode: 'SUCCESS',
    mchOrderNo: order.mchOrderNo,
    agentpayOrderId: agentpayOrderId(order),
    channelPayNo: utr(order),
    amount: order.amount,
    status: order.status,
    fee: order.fee,
    errorMessage: order.status === FAILED ? ERROR_MESSAGE : '',
    notifyStatus: order.callbacksAcknowledged > 0 ? 2 : order.callbacksSent > 0 ? 1 : 0,
  }
}

/** Reverses the end in a query's answer; an order still processing stays as it is. */
export function otherEnd(fields: Signable): Signable {
  switch (fields.status) {
    case SUCCESS:
      return { ...fields, status: FAILED, channelPayNo: null, errorMessage: 'not so' }
    case FAILED:
      return { ...fields, status: SUCCESS, errorMessage: '' }
    default:
      return fields
  }
}

/** A callback about the order (gateway contract, "Payout callback"), without its signature. */
export function callbackFields(order: Order, callbackIndex: CallbackVariant): Record<string, string> {
  const status = callbackIndex === 'denial' ? FAILED : order.status
  const amount = callbackIndex === 'other-amount' ? order.amount + 100n : order.amount
  return {
    amount: String(amount),
    mchOrderNo: order.mchOrderNo,
    fee: String(order.fee),
    channelPayNo: (status === SUCCESS && utr(order)) || '',
    agentpayOrderId: agentpayOrderId(order),
    status: String(status),
    ...(status === FAILED ? { errorMessage: ERROR_MESSAGE } : {}),
  }
}
