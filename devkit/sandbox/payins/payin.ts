import type { Instant } from '../../../src/platform/running/clock.ts'
import { feeOf, type Pauses, type PayinTerms } from '../state/terms.ts'

/** Gateway contract, "Payin order status". It does not show what 0 means; here: nobody has paid yet. */
export const WAITING = 0
export const PAID = 2
export const FAILED = 3

/** A payin that the sandbox has accepted. Amounts in paise, times in milliseconds since the epoch. */
export type Payin = {
  readonly id: number
  readonly merchantId: number
  readonly mchOrderNo: string
  readonly amount: bigint
  /** Never more than the amount. */
  readonly fee: bigint
  readonly notifyUrl: string
  readonly returnUrl: string | null
  readonly createdAt: Instant
  readonly expiresAt: Instant
  readonly status: typeof WAITING | typeof PAID | typeof FAILED
  readonly errorMessage: string | null
  readonly utr: string | null
  readonly paidAt: Instant | null
  /** When the money becomes available; null before there is any, and once it is available. */
  readonly availableAt: Instant | null
  /** When the next callback is due; null when none is outstanding. */
  readonly callbackAt: Instant | null
  readonly callbackTries: number
  readonly callbacksSent: number
  /** About the current status: 0 nothing was sent, 1 sent, 2 acknowledged. */
  readonly notifyStatus: 0 | 1 | 2
}

type Wanted = Pick<Payin, 'id' | 'merchantId' | 'mchOrderNo' | 'amount' | 'notifyUrl' | 'returnUrl'>

/** A new payin, at the moment of acceptance. */
export function createPayin(wanted: Wanted, { fees, expiryMs }: PayinTerms, now: Instant): Payin {
  const fee = feeOf(wanted.amount, fees)
  return {
    ...wanted,
    fee: fee < wanted.amount ? fee : wanted.amount,
    createdAt: now,
    expiresAt: now + expiryMs,
    status: WAITING,
    errorMessage: null,
    utr: null,
    paidAt: null,
    availableAt: null,
    callbackAt: null,
    callbackTries: 0,
    callbacksSent: 0,
    notifyStatus: 0,
  }
}

/** The payin with its money, and the first callback due at once. A failed payin may still be recovered this way. */
export const paid = (payin: Payin, utr: string, { settleMs }: PayinTerms, now: Instant): Payin => ({
  ...payin,
  status: PAID,
  errorMessage: null,
  utr,
  paidAt: now,
  availableAt: now + settleMs,
  ...newStory(now),
})

/** The unpaid payin, and the first callback due at once. */
export const failed = (payin: Payin, errorMessage: string, now: Instant): Payin => ({
  ...payin,
  status: FAILED,
  errorMessage,
  ...newStory(now),
})

const newStory = (now: Instant) => ({ callbackAt: now, callbackTries: 0, notifyStatus: 0 }) as const

/** A callback on its way: the status it reports, and whether it is scheduled or was asked for. */
export type Notice = { status: Payin['status']; scheduled: boolean }

/**
 * What one delivery does to the payin. An acknowledged callback ends the schedule. An unacknowledged one is due
 * again after the schedule's next pause (seconds); after the last pause the sandbox gives up. One that was asked
 * for is not repeated, and one with an outdated status counts for nothing.
 */
export function afterNotice(
  payin: Payin,
  notice: Notice,
  acknowledged: boolean,
  retries: Pauses,
  now: Instant,
): Payin {
  const sent = { ...payin, callbacksSent: payin.callbacksSent + 1 }
  if (notice.status !== payin.status) return sent
  if (acknowledged) return { ...sent, notifyStatus: 2, callbackAt: null }
  const told = { ...sent, notifyStatus: payin.notifyStatus === 2 ? 2 : 1 } as const
  if (!notice.scheduled || payin.callbackAt === null) return told
  const pause = retries[payin.callbackTries]
  if (pause === undefined) return { ...told, callbackAt: null }
  return { ...told, callbackAt: now + pause * 1000, callbackTries: payin.callbackTries + 1 }
}
