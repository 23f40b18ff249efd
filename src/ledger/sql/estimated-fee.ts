import type { Fragment } from '../../platform/postgres/postgres.ts'

/** The estimated fee of a payout p of a merchant m (src/domain/payout/fee.ts), in paise, as numeric. */
export const estimatedFee: Fragment = {
  fragment: 'least(m.fee_estimate, ceil(p.amount::numeric * m.fee_share / 1000000))',
}

/**
 * For a payout p of a merchant m: not known to be at an account with another merchant number than the one in force, and so with
 * another balance.
 */
export const paidFromBalance: Fragment = {
  fragment: `(p.account_id is null or p.account_id not in (
    select other.account_id from gateway_settings other
    join gateway_settings ours on ours.merchant_id = other.merchant_id and ours.settings_hash = m.settings_hash
    where other.merchant_id = m.merchant_id and other.mch_id <> ours.mch_id))`,
}

/** The most that a bigint holds. A sum of amounts that a gateway reported may exceed it, and must not make the query fail. */
export const MOST_PAISE: Fragment = { fragment: '9223372036854775807' }

/** The sum of amounts in paise over the rows for which `where` holds; 0 for no rows. */
export const sumOfPaise = (amount: string, where?: string): Fragment => {
  const filter = where === undefined ? '' : ` filter (where ${where})`
  return { fragment: `least(coalesce(sum(${amount})${filter}, 0), ${MOST_PAISE.fragment})::bigint` }
}
