import type { Fragment } from '../../platform/postgres/postgres.ts'

/** The estimated fee of a payout p of a merchant m (src/domain/payout/fee.ts), in paise, as numeric. */
export const estimatedFee: Fragment = {
  fragment: 'least(m.fee_estimate, ceil(p.amount::numeric * m.fee_share / 1000000))',
}

/** The most that a bigint holds: a sum of what a gateway said may be beyond, and must not stop whoever reads it. */
export const MOST_PAISE: Fragment = { fragment: '9223372036854775807' }

/** The sum of amounts of paise, of the rows for which `where` holds; of none it is 0. */
export const sumOfPaise = (amount: string, where?: string): Fragment => {
  const filter = where === undefined ? '' : ` filter (where ${where})`
  return { fragment: `least(coalesce(sum(${amount})${filter}, 0), ${MOST_PAISE.fragment})::bigint` }
}
