import type { Instant } from '../platform/clock.ts'
import type { Letter } from './magic.ts'
import { FAILED, type Order, PROCESSING, SUCCESS } from './order.ts'
import type { Signable } from './sign.ts'

const ERROR_MESSAGE = 'The beneficiary bank returned the transfer'

/** The platform's order number: 20 characters, the day of acceptance (UTC) and the order's sequence. */
export const agentpayOrderId = (order: Pick<Order, 'id' | 'acceptedAt'>): string =>
  `AP${day(order.acceptedAt)}${String(order.id).padStart(10, '0')}`

/** The sequence in a platform order number, or undefined for a text that is none. */
export function sequenceOf(agentpayOrderId: string): number | undefined {
  const [, sequence] = /^AP\d{8}(\d{10})$/.exec(agentpayOrderId) ?? []
  return sequence === undefined ? undefined : Number(sequence)
}

/** Twelve digits, as IMPS and UPI write them: last digit of the year, month and day, then the sequence. */
export const utr = (order: Order): string | null =>
  order.status === SUCCESS
    ? `${day(order.acceptedAt).slice(3)}${String(order.id % 10_000_000).padStart(7, '0')}`
    : null

/** What apply says of an order that was taken (gateway contract, "Create payout order"). */
export const takenFields = (order: Order): Signable => ({
  retCode: 'SUCCESS',
  retMsg: 'accepted',
  agentpayOrderId: agentpayOrderId(order),
  fee: order.fee,
  extra: null,
  status: PROCESSING,
})

/** What a query says of the order (gateway contract, "Query payout order"). */
export function queryFields(order: Order): Signable {
  return {
    retCode: 'SUCCESS',
    mchOrderNo: order.mchOrderNo,
    agentpayOrderId: agentpayOrderId(order),
    channelPayNo: utr(order),
    amount: order.amount,
    status: order.status,
    fee: order.fee,
    errorMessage: order.status === FAILED ? ERROR_MESSAGE : null,
    notifyStatus: order.callbacksAcknowledged > 0 ? 2 : order.callbacksSent > 0 ? 1 : 0,
  }
}

/** What a letter says of the order (gateway contract, "Payout callback"), without its signature. */
export function letterFields(order: Order, letter: Letter): Record<string, string> {
  const status = letter === 'denial' ? FAILED : order.status
  const amount = letter === 'other-amount' ? order.amount + 100n : order.amount
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

let dayCache = { start: Number.NaN, text: '' }

function day(at: Instant): string {
  const start = at - (at % 86_400_000)
  if (dayCache.start !== start) {
    dayCache = { start, text: new Date(start).toISOString().slice(0, 10).replaceAll('-', '') }
  }
  return dayCache.text
}
