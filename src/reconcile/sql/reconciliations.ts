import type { Instant } from '../../payout/instant.ts'
import type { Paise } from '../../payout/money.ts'
import { type Fragment, sql } from '../../platform/postgres.ts'

/** One run, about the payouts of one merchant that were accepted from `periodFrom` to before `periodTo`. */
export type Reconciliation = {
  reconciliationId: string
  merchantId: string
  periodFrom: Instant
  periodTo: Instant
  startedAt: Instant
  /** Null: something is still to be asked. */
  finishedAt: Instant | null
  /** As the gateway told it when the run began; null: it did not. */
  balance: Paise | null
}

/** The merchant's whole balance as the gateway told it, and what it might have had in hand for us then. */
export type Snapshot = { at: Instant; balance: Paise; inFlight: Paise }

const columns: Fragment = {
  fragment: 'reconciliation_id, merchant_id, period_from, period_to, started_at, finished_at, balance',
}

type Period = { merchantId: string; from: Instant; to: Instant }

export const reconciliationById = sql<{ reconciliationId: string }, Reconciliation>`
  select ${columns} from reconciliations where reconciliation_id = ${'reconciliationId'}::uuid`

/** The latest run about a period that was interrupted. */
export const unfinished = sql<Period, Reconciliation>`
  select ${columns} from reconciliations
  where merchant_id = ${'merchantId'} and period_from = to_timestamp(${'from'}::float8 / 1000)
    and period_to = to_timestamp(${'to'}::float8 / 1000) and finished_at is null
  order by started_at desc limit 1`

export const begin = sql<
  Period & { reconciliationId: string; balance: Paise | null; inFlight: Paise },
  Reconciliation
>`
  insert into reconciliations (reconciliation_id, merchant_id, period_from, period_to, balance, in_flight)
  values (${'reconciliationId'}::uuid, ${'merchantId'}, to_timestamp(${'from'}::float8 / 1000),
    to_timestamp(${'to'}::float8 / 1000), ${'balance'}::bigint, ${'inFlight'})
  returning ${columns}`

export const finish = sql<{ reconciliationId: string }, Reconciliation>`
  update reconciliations set finished_at = now() where reconciliation_id = ${'reconciliationId'}::uuid
  returning ${columns}`

/** Of all runs about the merchant, the one whose balance was told nearest to a moment. */
export const snapshotNear = sql<{ merchantId: string; moment: Instant }, Snapshot>`
  select started_at as at, balance, in_flight from reconciliations
  where merchant_id = ${'merchantId'} and balance is not null
  order by abs(extract(epoch from started_at) - ${'moment'}::float8 / 1000), started_at
  limit 1`

/**
 * What of a page of the merchant's payouts became paid between two moments, fees included. One that was paid before may be
 * updated later: a report tells what the first one left out. Of one that was paid when nobody kept the moment beside it, the
 * history tells, or if that is gone its last update.
 */
export const paidBetween = sql<
  Period & { after: string; limit: number },
  { paid: Paise; last: string | null }
>`
  with page as materialized (
    select payout_id, version, state, amount, fee, paid_at, updated_at from payouts
    where merchant_id = ${'merchantId'} and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  )
  select max(p.payout_id) as last,
    coalesce(sum(p.amount + coalesce(p.fee, 0)) filter (
      where became.paid_at > to_timestamp(${'from'}::float8 / 1000)
        and became.paid_at <= to_timestamp(${'to'}::float8 / 1000)
    ), 0)::bigint as paid
  from page p
  left join lateral (
    select coalesce(p.paid_at, (
      select h.at from history h
      where h.merchant_id = ${'merchantId'} and h.payout_id = p.payout_id and h.version = p.version
      limit 1
    ), p.updated_at) as paid_at
  ) became on p.state = 'paid' and p.updated_at > to_timestamp(${'from'}::float8 / 1000)`
