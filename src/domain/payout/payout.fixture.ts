import { paise } from '../money.ts'
import type { QueryPolicy } from './next-query.ts'
import type { Payout } from './payout.ts'

/** One "not found" confirms absence, of any moment; the gateway may pay one number twice. Tests name what they need besides. */
export const QUERY_POLICY: QueryPolicy = {
  queryAfterMs: [1_000],
  graceMs: 0,
  confirmations: 1,
  notPaidCodes: ['LIMIT', 'LATER', 'TOO_FAST'],
  duplicatesRefused: false,
}

/** A payout that was sent once, with no other facts than `fields`. */
export const sentPayout = (fields: Partial<Payout>): Payout => ({
  merchantId: 'acme',
  payoutId: 'salary-1',
  batchId: 'november',
  orderNo: 'PORDER1',
  amount: paise(5_000_000n),
  currency: 'INR',
  state: 'submitting',
  reason: null,
  version: 3,
  attempt: 1,
  accountId: 'here',
  doubted: false,
  turnedAway: false,
  orderShown: false,
  orderBesides: false,
  absenceConfirmed: false,
  unpaidCodes: null,
  refusal: null,
  unreported: false,
  saidOtherwise: null,
  cancelRequest: null,
  agentpayOrderId: null,
  fee: null,
  utr: null,
  deadline: 4_000_000_000_000,
  unknownSince: null,
  queries: 0,
  notFoundCount: 0,
  askedAt: null,
  ready: false,
  dueAt: null,
  lastChangeAt: null,
  ...fields,
})
