import type { Fragment } from '../../../platform/postgres/postgres.ts'

/**
 * When `payouts p` entered its state for its reason; null: that part of the history has expired. What a recovery read back has the
 * time at which it was published first.
 */
export const enteredAt: Fragment = {
  fragment: `(select least(h.published_at, h.at) from history h
    where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.version = p.version)`,
}
