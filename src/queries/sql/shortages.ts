import type { Instant } from '../../domain/instant.ts'
import type { Paise } from '../../domain/money.ts'
import { estimatedFee, MOST_PAISE, paidFromBalance, sumOfPaise } from '../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** The count stops here and then means "at least so many". */
export const COUNT_WAITING_UP_TO = 10_000

/** A merchant whose balance does not cover its next payout, as dispatch found it; amounts in paise. */
export type Shortage = {
  merchantId: string
  payoutId: string
  since: Instant
  /** How much is missing, with the estimated fee, by the balance known now. */
  missing: Paise
  /** Waiting payouts, including the next one, counted up to a bound. */
  waiting: number
  /** What the balance keeps for payouts whose result is not known yet, with the estimated fees. */
  kept: Paise
}

/**
 * For a merchant m that sends, the payout that its balance does not cover, and how much is missing. A payout that has moved since dispatch
 * looked no longer waits. The limit makes PostgreSQL use the primary key; otherwise it would read the whole index of ready
 * payouts.
 */
export const lackOfBalance: Fragment = {
  fragment: `
    select p.payout_id,
      least(p.amount + ${estimatedFee.fragment}
        - (m.available::numeric - m.snapshot_in_doubt - (m.claimed_total - m.snapshot_claimed)),
        ${MOST_PAISE.fragment})::bigint as missing
    from (
      select payouts.payout_id, payouts.amount, payouts.ready from payouts
      where payouts.merchant_id = m.merchant_id and payouts.payout_id = m.short_payout_id
      limit 1
    ) p
    where p.ready and m.paused_at is null and m.recovering_since is null`,
}

/** For one merchant, or (null) for all. */
export const shortages = sql<{ merchantId: string | null; countUpTo: number }, Shortage>`
  select m.merchant_id, lack.payout_id, m.short_since as since, lack.missing, ready.count as waiting,
    (select ${sumOfPaise(`p.amount + ${estimatedFee.fragment}`)} from payouts p
     where p.merchant_id = m.merchant_id and p.in_doubt and ${paidFromBalance}) as kept
  from merchants m
  cross join lateral (${lackOfBalance}) lack
  cross join lateral (
    select count(*)::int as count from (
      select from payouts where payouts.merchant_id = m.merchant_id and payouts.ready limit ${'countUpTo'}
    ) counted
  ) ready
  where (${'merchantId'}::text is null or m.merchant_id = ${'merchantId'}) and lack.missing > 0
  order by m.merchant_id`
