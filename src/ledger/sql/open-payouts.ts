import type { Paise } from '../../domain/money.ts'
import type { State } from '../../domain/payout/states.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { isOpen } from './columns.ts'
import { estimatedFee, sumOfPaise } from './estimated-fee.ts'

/** The merchants that have open payouts. Walks from one merchant to the next along the index `payouts_open`. */
export const merchantsWithOpen = sql<object, { merchantId: string }>`
  with recursive open as (
    (select merchant_id from payouts where ${isOpen} order by merchant_id limit 1)
    union all
    select (
      select payouts.merchant_id from payouts
      where ${isOpen} and payouts.merchant_id > open.merchant_id
      order by payouts.merchant_id limit 1
    ) from open where open.merchant_id is not null
  )
  select merchant_id from open where merchant_id is not null`

/** Open payouts of one state that one account may have; null: no account may have a live attempt. */
export type OpenPayouts = {
  accountId: string | null
  state: State
  count: number
  amount: Paise
  /** The amount of those that were attempted, with fees; a fee is estimated if the gateway has not named one. */
  attempted: Paise
}

/** One page along the index `payouts_open`. */
export const openPage = sql<
  { merchantId: string; after: string; limit: number },
  OpenPayouts & { last: string | null }
>`
  with page as materialized (
    select payout_id, account_id, state, amount, fee, attempt from payouts
    where merchant_id = ${'merchantId'} and ${isOpen} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), merchant as materialized (
    select fee_estimate, fee_share from merchants where merchant_id = ${'merchantId'}
  )
  select account_id, state, count(*)::int as count, ${sumOfPaise('amount')} as amount,
    ${sumOfPaise(`amount + coalesce(fee, ${estimatedFee.fragment}, 0)`, 'attempt > 0')} as attempted,
    (select max(payout_id) from page) as last
  from page p left join merchant m on true group by account_id, state`
