import { isSameUtr } from '../utr.ts'
import type { Payout } from './payout.ts'

/**
 * The gateway may have an order of an attempt before the latest, which is not alive, and reports it as failed. What waits
 * after that attempt was turned away was not sent since; how many attempts the ledger knows of tells nothing, as it may have
 * been set back.
 */
export const hasEarlierOrders = ({ turnedAway, doubted, state }: Payout): boolean =>
  turnedAway && (doubted || (state !== 'queued' && state !== 'held'))

/** What every new doubt about attempts sets: who confirmed the absence of others said nothing about these. */
export const DOUBT = { doubted: true, absenceConfirmed: false } as const

/** Whether an order besides that of the latest attempt may be alive, and so be the one that is paid. */
export const mayBePaidByAnother = ({
  doubted,
  orderBesides,
}: Pick<Payout, 'doubted' | 'orderBesides'>): boolean => doubted || orderBesides

/** Whether the gateway may have more than one order of a payout, alive or not. */
export const mayHaveSeveral = (payout: Payout): boolean =>
  mayBePaidByAnother(payout) || hasEarlierOrders(payout)

/** What names an order or its payment. */
export type OrderNames = Pick<Payout, 'agentpayOrderId' | 'utr'>

/** Whether a statement names the payment that is known, by its order or by its UTR. */
export const isOfPayment = (payment: OrderNames, { agentpayOrderId, utr }: OrderNames): boolean =>
  (agentpayOrderId !== null && agentpayOrderId === payment.agentpayOrderId) ||
  (utr !== null && payment.utr !== null && isSameUtr(utr, payment.utr))

/** Whether two payments of a payout are known to be different ones. */
export const areTwoPayments = (one: OrderNames, other: OrderNames): boolean =>
  (one.utr !== null && other.utr !== null && !isSameUtr(one.utr, other.utr)) ||
  (one.agentpayOrderId !== null &&
    other.agentpayOrderId !== null &&
    one.agentpayOrderId !== other.agentpayOrderId)
