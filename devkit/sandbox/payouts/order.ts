import { createHash } from 'node:crypto'
import type { Instant } from '../../../src/platform/running/clock.ts'
import { maskNumber } from '../mask.ts'
import type { Behaviour, CallbackVariant } from '../test-accounts.ts'
import { extraValue } from './payout-rules.ts'

/** Gateway contract, "Payout order status". The sandbox accepts straight into processing. */
export const PROCESSING = 1
export const SUCCESS = 2
export const FAILED = 3
export type Status = typeof PROCESSING | typeof SUCCESS | typeof FAILED

/** A payout that the sandbox has accepted. Amounts in paise, times in milliseconds since the epoch. */
export type Order = {
  readonly id: number
  readonly merchantId: number
  readonly mchOrderNo: string
  readonly amount: bigint
  readonly fee: bigint
  readonly accountMasked: string
  /** Shows whether two orders went to the same account, but not to which: see `payeeOf`. */
  readonly payee: string
  readonly notifyUrl: string
  readonly callbacks: readonly CallbackVariant[]
  readonly becomes: typeof SUCCESS | typeof FAILED
  readonly acceptedAt: Instant
  readonly settleAt: Instant
  readonly applyCalls: number
  status: Status
  /** How often the money left. More than once would be the sandbox's own mistake, and must show. */
  timesPaid: number
  /** Which of `letters` to send until it is acknowledged, and how often it was sent already. */
  callbackIndex: number
  callbackTries: number
  /** When the next callback is due; null when none is outstanding. */
  callbackAt: Instant | null
  callbacksSent: number
  callbacksAcknowledged: number
}

/** A new order, at the moment of acceptance. The sandbox refused `tries` applies before it. */
export function acceptOrder(
  request: {
    id: number
    merchantId: number
    mchOrderNo: string
    amount: bigint
    accountNo: string
    /** The JSON text that carries the IFSC or VPA. */
    extra: string
    notifyUrl: string
  },
  terms: { fee: bigint; behaviour: Behaviour; settleMs: number; tries: number },
  now: Instant,
): Order {
  const { accountNo, extra, ...rest } = request
  return {
    ...rest,
    fee: terms.fee,
    accountMasked: maskNumber(accountNo),
    payee: payeeOf(accountNo, extra),
    callbacks: terms.behaviour.callbacks,
    becomes: terms.behaviour.becomes === 'paid' ? SUCCESS : FAILED,
    acceptedAt: now,
    settleAt: now + (terms.behaviour.settleMs ?? terms.settleMs),
    applyCalls: terms.tries + 1,
    status: PROCESSING,
    timesPaid: 0,
    callbackIndex: 0,
    callbackTries: 0,
    callbackAt: null,
    callbacksSent: 0,
    callbacksAcknowledged: 0,
  }
}

/**
 * SHA-256 in hex of the account number, a line feed and the IFSC or VPA: only a client that knows the account can
 * recognize it.
 */
const payeeOf = (accountNo: string, extra: string): string =>
  createHash('sha256')
    .update(`${accountNo}\n${extraValue(extra)}`)
    .digest('hex')

/** Ends the order: sets its status, and the first callback is due at once. */
export function settle(order: Order, now: Instant): void {
  order.status = order.becomes
  if (order.becomes === SUCCESS) order.timesPaid += 1
  order.callbackAt = order.callbacks.length > 0 ? now : null
}

/**
 * What one delivery does to the order. After an acknowledged letter the next one follows at once. Any other letter
 * is due again after the schedule's next pause (seconds); after the last pause the sandbox gives it up.
 */
export function afterDelivery(
  order: Order,
  acknowledged: boolean,
  retries: readonly number[],
  now: Instant,
): void {
  order.callbacksSent += 1
  if (acknowledged) order.callbacksAcknowledged += 1
  const pause = order.callbacks[order.callbackIndex] === 'forgery' ? undefined : retries[order.callbackTries]
  if (!acknowledged && pause !== undefined) {
    order.callbackTries += 1
    order.callbackAt = now + pause * 1000
    return
  }
  order.callbackIndex += 1
  order.callbackTries = 0
  order.callbackAt = order.callbackIndex < order.callbacks.length ? now : null
}
