import type { Instant } from '../../../domain/instant.ts'
import type { Paise } from '../../../domain/money.ts'
import type { State } from '../../../domain/payout/states.ts'
import { sumOfPaise } from '../../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'
import type { Difference, Here } from '../compare.ts'
import type { PaidPayout, StatedPayout } from '../compare-statement.ts'

type Run = { reconciliationId: string }
type ReconcilePage = { after: string; limit: number }
type Last = { last: string | null }

/** How many payouts a run lists, how many the gateway has answered about, and the first and last answer; null: no answer yet. */
export type ReconcileProgress = {
  listed: number
  asked: number
  firstTold: Instant | null
  lastTold: Instant | null
}

/**
 * Reads the next payouts of the merchant after a payoutId, and adds those of the period that were ever attempted to the run's
 * list; entries on it stay. `last`: the payoutId to continue after; null: that was the last page.
 */
export const listPayouts = sql<
  Run & ReconcilePage & { merchantId: string; from: Instant; to: Instant },
  Last
>`
  with page as materialized (
    select payout_id, attempt, accepted_at from payouts
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), listed as (
    insert into reconciled_payouts (reconciliation_id, payout_id)
    select ${'reconciliationId'}::uuid, payout_id from page
    where attempt > 0
      and accepted_at >= to_timestamp(${'from'}::float8 / 1000) and accepted_at < to_timestamp(${'to'}::float8 / 1000)
    on conflict do nothing
  )
  select max(payout_id) as last from page`

/** For one page of the run's list. */
export const progress = sql<Run & ReconcilePage, ReconcileProgress & Last>`
  with page as materialized (
    select payout_id, asked_at from reconciled_payouts
    where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select count(*)::int as listed, count(asked_at)::int as asked, min(asked_at) as first_told, max(asked_at) as last_told,
    max(payout_id) as last
  from page`

/** The next payouts on the list after a payoutId that the gateway has not answered about. */
export const unasked = sql<Run & { after: string; limit: number }, { payoutId: string }>`
  select payout_id from reconciled_payouts
  where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'} and asked_at is null
  order by payout_id limit ${'limit'}`

/** Puts the differing payouts of one page back on the list. */
export const askAgain = sql<Run & ReconcilePage, Last>`
  with page as materialized (
    select payout_id from reconciled_payouts
    where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), again as (
    update reconciled_payouts set asked_at = null
    where reconciliation_id = ${'reconciliationId'}::uuid and jsonb_array_length(differences) > 0
      and payout_id > ${'after'} and payout_id <= (select max(payout_id) from page)
  )
  select max(payout_id) as last from page`

export const payoutHere = sql<
  { merchantId: string; payoutId: string },
  Here & { orderNo: string; accountId: string | null; version: number; now: Instant }
>`
  select clock_timestamp() as now, p.state, p.amount, p.fee, p.utr, p.agentpay_order_id, p.order_no, p.account_id, p.version,
    exists (select from reversals r where r.merchant_id = p.merchant_id and r.payout_id = p.payout_id) as reversed
  from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`

type AnsweredPayout = Run & {
  payoutId: string
  status: string | null
  amount: Paise | null
  fee: Paise | null
  /** The ledger's state at the comparison. */
  ledgerState: State
  ledgerFee: Paise | null
  /** JSON text. */
  differences: string
  settled: boolean
}

/** A payout that differed earlier in this run and agrees now counts as settled too, no matter what settled it. */
export const keepAnswer = sql<AnsweredPayout>`
  update reconciled_payouts
  set asked_at = now(), gateway_status = ${'status'}, gateway_amount = ${'amount'}, gateway_fee = ${'fee'},
      ledger_state = ${'ledgerState'}, ledger_fee = ${'ledgerFee'},
      differences = ${'differences'}::jsonb,
      settled = ${'settled'}
        or (coalesce(jsonb_array_length(differences), 0) > 0 and jsonb_array_length(${'differences'}::jsonb) = 0)
  where reconciliation_id = ${'reconciliationId'}::uuid and payout_id = ${'payoutId'}`

type OrNull<Row> = Row | { [Column in keyof Row]: null }

/** A payout that differs between the two sides. */
export type Differing = {
  payoutId: string
  orderNo: string
  amount: Paise
  acceptedAt: Instant
  differences: Difference[]
}

/** For one page of the run's list; one row of nulls if nothing in it differs. */
export const differing = sql<Run & ReconcilePage & { merchantId: string }, OrNull<Differing> & Last>`
  with page as materialized (
    select payout_id, differences from reconciled_payouts
    where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select p.payout_id, p.order_no, p.amount, p.accepted_at, r.differences, whole.last
  from (select max(payout_id) as last from page) whole
  left join page r on jsonb_array_length(r.differences) > 0
  left join lateral (
    select * from payouts
    where payouts.merchant_id = ${'merchantId'} and payouts.payout_id = r.payout_id
    offset 0
  ) p on true`

/** Sums, amounts in paise. */
export type ReconcileTotals = {
  paidHere: number
  amountHere: Paise
  feesHere: Paise
  paidThere: number
  amountThere: Paise
  feesThere: Paise
  /** Of those paid here, what came back, as confirmed by a person. */
  reversed: number
  amountReversed: Paise
  /** Open on both sides. */
  open: number
  settled: number
}

/** For the answered payouts of one page of the run's list, by the ledger's state at that answer. */
export const totals = sql<Run & ReconcilePage & { merchantId: string }, ReconcileTotals & Last>`
  with page as materialized (
    select * from reconciled_payouts
    where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select (select max(payout_id) from page) as last,
    count(*) filter (where p.state = 'paid')::int as paid_here,
    ${sumOfPaise('p.amount', "p.state = 'paid'")} as amount_here,
    ${sumOfPaise('p.fee', "p.state = 'paid'")} as fees_here,
    count(*) filter (where r.gateway_status = 'success')::int as paid_there,
    ${sumOfPaise('r.gateway_amount', "r.gateway_status = 'success'")} as amount_there,
    ${sumOfPaise('r.gateway_fee', "r.gateway_status = 'success'")} as fees_there,
    count(v.amount) filter (where p.state = 'paid')::int as reversed,
    ${sumOfPaise('v.amount', "p.state = 'paid'")} as amount_reversed,
    count(*) filter (
      where p.state not in ('paid', 'failed', 'rejected', 'cancelled')
        and coalesce(r.gateway_status, '') not in ('success', 'failed')
    )::int as open,
    count(*) filter (where r.settled)::int as settled
  from page r
  cross join lateral (
    select coalesce(r.ledger_state, state) as state, amount, case when r.ledger_state is null then fee else r.ledger_fee end as fee
    from payouts
    where payouts.merchant_id = ${'merchantId'} and payouts.payout_id = r.payout_id
    offset 0
  ) p
  left join lateral (
    select amount from reversals
    where reversals.merchant_id = ${'merchantId'} and reversals.payout_id = r.payout_id
    offset 0
  ) v on true
  where r.asked_at is not null`

/**
 * When payoutd learned that a payout p was paid. A payout may be updated after that, because a later report brings what the first
 * one left out. If it was paid before payoutd kept the moment, its history gives it, or its last update if the history is gone.
 */
export const becamePaidAt: Fragment = {
  fragment: `coalesce(p.paid_at, (
    select h.at from history h
    where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.version = p.version
    limit 1
  ), p.updated_at)`,
}

/**
 * For one page of all payouts of the merchant; one row of nulls if none of them became paid in the period. The money left between
 * the moment when a payout was first sent and the one when it became paid.
 */
export const paidInPeriod = sql<
  ReconcilePage & { merchantId: string; accountId: string | null; from: Instant; to: Instant },
  OrNull<PaidPayout> & Last
>`
  with page as materialized (
    select merchant_id, payout_id, state, amount, utr, version, account_id, sent_at, paid_at, updated_at from payouts
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select p.payout_id, p.amount, p.utr, whole.last, case
    when p.account_id <> ${'accountId'}::text then 'other-account'
    when least(p.sent_at, p.at) < to_timestamp(${'from'}::float8 / 1000) + interval '1 day'
      or p.at >= to_timestamp(${'to'}::float8 / 1000) - interval '1 day' then 'neighbouring' end as other_statement
  from (select max(payout_id) as last from page) whole
  left join (select p.*, ${becamePaidAt} as at from page p where p.state = 'paid') p
    on p.at >= to_timestamp(${'from'}::float8 / 1000) and p.at < to_timestamp(${'to'}::float8 / 1000)`

export const namedBy = sql<{ merchantId: string; utrs: string[]; orderNos: string[] }, StatedPayout>`
  select p.payout_id, p.order_no, p.state, p.amount, p.utr, case when p.state = 'paid' then ${becamePaidAt} end as paid_at
  from (
    select p.* from unnest(${'utrs'}::text[]) as given (utr)
    cross join lateral (
      select * from payouts
      where upper(payouts.utr) = upper(given.utr) and payouts.merchant_id = ${'merchantId'}
      offset 0
    ) p
    union
    select p.* from unnest(${'orderNos'}::text[]) as given (order_no)
    cross join lateral (
      select * from payouts
      where payouts.merchant_id = ${'merchantId'} and payouts.order_no = given.order_no
      limit 1
    ) p
  ) p
  order by p.accepted_at, p.payout_id`
