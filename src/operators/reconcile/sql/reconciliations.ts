import type { Instant } from '../../../domain/instant.ts'
import type { Paise } from '../../../domain/money.ts'
import { estimatedFee, MOST_PAISE, sumOfPaise } from '../../../ledger/sql/estimated-fee.ts'
import { type Fragment, sql } from '../../../platform/postgres/postgres.ts'
import { becamePaidAt } from './payouts.ts'

/** One run, about the payouts of one merchant that were accepted from `periodFrom` to before `periodTo`. */
export type Reconciliation = {
  reconciliationId: string
  merchantId: string
  periodFrom: Instant
  periodTo: Instant
  startedAt: Instant
  /** Null: some queries are still open. */
  finishedAt: Instant | null
  /** As the gateway reported it when the run began; null: it did not. */
  balance: Paise | null
  /** The gateway account of the balance; null: runs did not keep it then. */
  accountId: string | null
}

/** The whole balance of an account as the gateway reported it, and what the gateway might have had in hand for us then. */
export type Snapshot = {
  /** The gateway measured the balance after this moment, */
  at: Instant
  /** and before this one. */
  balanceAt: Instant
  balance: Paise
  inFlight: Paise
}

const columns: Fragment = {
  fragment:
    'reconciliation_id, merchant_id, period_from, period_to, started_at, finished_at, balance, account_id',
}

type Period = { merchantId: string; from: Instant; to: Instant }

export const reconciliationById = sql<{ reconciliationId: string }, Reconciliation>`
  select ${columns} from reconciliations where reconciliation_id = ${'reconciliationId'}::uuid`

/** The latest interrupted run about a period. */
export const unfinished = sql<Period, Reconciliation>`
  select ${columns} from reconciliations
  where merchant_id = ${'merchantId'} and period_from = to_timestamp(${'from'}::float8 / 1000)
    and period_to = to_timestamp(${'to'}::float8 / 1000) and finished_at is null
  order by started_at desc limit 1`

export const serverClock = sql<object, { now: Instant }>`select clock_timestamp() as now`

export const begin = sql<
  Period & {
    reconciliationId: string
    startedAt: Instant
    balance: Paise | null
    inFlight: Paise
    accountId: string
  },
  Reconciliation
>`
  insert into reconciliations (reconciliation_id, merchant_id, period_from, period_to, started_at, balance_at, balance, in_flight,
                               account_id)
  values (${'reconciliationId'}::uuid, ${'merchantId'}, to_timestamp(${'from'}::float8 / 1000),
    to_timestamp(${'to'}::float8 / 1000), to_timestamp(${'startedAt'}::float8 / 1000), clock_timestamp(), ${'balance'}::bigint, ${'inFlight'},
    ${'accountId'})
  returning ${columns}`

export const finish = sql<{ reconciliationId: string }, Reconciliation>`
  update reconciliations set finished_at = now() where reconciliation_id = ${'reconciliationId'}::uuid
  returning ${columns}`

/** Reopens a run with something to ask again. */
export const reopen = sql<{ reconciliationId: string }>`
  update reconciliations set finished_at = null where reconciliation_id = ${'reconciliationId'}::uuid`

type ReconciledAccount = { accountId: string | null }

/** The run about the merchant at this account whose balance report is nearest to a moment. */
export const snapshotNear = sql<{ merchantId: string; moment: Instant } & ReconciledAccount, Snapshot>`
  select started_at as at, coalesce(balance_at, started_at) as balance_at, balance, in_flight from reconciliations
  where merchant_id = ${'merchantId'} and account_id is not distinct from ${'accountId'} and balance is not null
  order by abs(extract(epoch from started_at) - ${'moment'}::float8 / 1000), started_at
  limit 1`

/**
 * For one page of the merchant's payouts: what became paid between two moments, fees included, except by another account.
 * `endedFrom` and `endedTo`: what was sent and ended, paid or not, while payoutd asked for the balance at either moment, and what
 * failed less than a day before: it may not be back yet.
 */
export const paidBetween = sql<
  Period & ReconciledAccount & { fromTold: Instant; toTold: Instant; after: string; limit: number },
  { paid: Paise; endedFrom: Paise; endedTo: Paise; last: string | null }
>`
  with page as materialized (
    select merchant_id, payout_id, version, state, amount, fee, attempt, paid_at, updated_at, account_id from payouts
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), merchant as materialized (
    select fee_estimate, fee_share from merchants where merchant_id = ${'merchantId'}
  )
  select max(p.payout_id) as last,
    least(coalesce(sum(p.amount + coalesce(p.fee, 0)) filter (
      where p.state = 'paid' and ended.at > to_timestamp(${'from'}::float8 / 1000)
        and ended.at <= to_timestamp(${'to'}::float8 / 1000)
    ), 0), ${MOST_PAISE})::bigint as paid,
    least(coalesce(sum(p.amount + coalesce(p.fee, ${estimatedFee}, 0)) filter (
      where ended.at <= to_timestamp(${'fromTold'}::float8 / 1000)
        and (ended.at > to_timestamp(${'from'}::float8 / 1000) or p.state = 'failed')
    ), 0), ${MOST_PAISE})::bigint as ended_from,
    least(coalesce(sum(p.amount + coalesce(p.fee, ${estimatedFee}, 0)) filter (
      where ended.at <= to_timestamp(${'toTold'}::float8 / 1000) and (
        ended.at > to_timestamp(${'to'}::float8 / 1000)
        or (p.state = 'failed' and ended.at > to_timestamp(${'to'}::float8 / 1000) - interval '1 day')
      )
    ), 0), ${MOST_PAISE})::bigint as ended_to
  from page p
  left join merchant m on true
  left join lateral (
    select case when p.state = 'paid' then ${becamePaidAt} else p.updated_at end as at
  ) ended on p.attempt > 0 and p.state in ('paid', 'failed', 'rejected', 'cancelled')
    and p.updated_at > to_timestamp(${'from'}::float8 / 1000) - interval '1 day'
    and (p.account_id is null or ${'accountId'}::text is null or p.account_id = ${'accountId'})`

/** Money of paid payouts that came back, amounts in paise. */
export type Returned = {
  reversals: number
  amount: Paise
  /** The part of it that may have come back before the first of the two balances, because it was paid before that. */
  early: Paise
  /** The part of the rest that may come back after the second one, because it was reported less than a day before that. */
  late: Paise
}

/**
 * For one page of the merchant's confirmed reversals: what payoutd learned between two moments to have come back to an account. It
 * learned so from the gateway's report, however much later a person confirmed it.
 */
export const returnedBetween = sql<
  Period & ReconciledAccount & { fromTold: Instant; after: string; limit: number },
  Returned & { last: string | null }
>`
  with page as materialized (
    select payout_id, anomaly_id, amount, at from reversals
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select max(r.payout_id) as last, count(p.is_early)::int as reversals,
    ${sumOfPaise('r.amount', 'p.is_early is not null')} as amount,
    ${sumOfPaise('r.amount', 'p.is_early')} as early,
    ${sumOfPaise('r.amount', "not p.is_early and told.at > told.second - interval '1 day'")} as late
  from page r
  cross join lateral (
    select to_timestamp(${'to'}::float8 / 1000) as second, coalesce((
      select at from anomalies where anomalies.merchant_id = ${'merchantId'} and anomalies.anomaly_id = r.anomaly_id
    ), r.at) as at
    offset 0
  ) told
  left join lateral (
    select ${becamePaidAt} <= to_timestamp(${'fromTold'}::float8 / 1000) as is_early from payouts p
    where p.merchant_id = ${'merchantId'} and p.payout_id = r.payout_id
      and (p.account_id is null or ${'accountId'}::text is null or p.account_id = ${'accountId'})
    offset 0
  ) p on told.at > to_timestamp(${'from'}::float8 / 1000) and told.at <= told.second`
