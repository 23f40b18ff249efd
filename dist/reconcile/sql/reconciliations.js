import { sql } from "../../platform/postgres.js";
const columns = {
    fragment: 'reconciliation_id, merchant_id, period_from, period_to, started_at, finished_at, balance',
};
export const reconciliationById = sql `
  select ${columns} from reconciliations where reconciliation_id = ${'reconciliationId'}::uuid`;
/** The latest run about a period that was interrupted. */
export const unfinished = sql `
  select ${columns} from reconciliations
  where merchant_id = ${'merchantId'} and period_from = to_timestamp(${'from'}::float8 / 1000)
    and period_to = to_timestamp(${'to'}::float8 / 1000) and finished_at is null
  order by started_at desc limit 1`;
export const begin = sql `
  insert into reconciliations (reconciliation_id, merchant_id, period_from, period_to, balance, in_flight)
  select ${'reconciliationId'}::uuid, ${'merchantId'}, to_timestamp(${'from'}::float8 / 1000),
    to_timestamp(${'to'}::float8 / 1000), ${'balance'}::bigint, (
      select coalesce(sum(p.amount + coalesce(p.fee, m.fee_estimate)), 0)::bigint
      from payouts p join merchants m on m.merchant_id = p.merchant_id
      where p.merchant_id = ${'merchantId'} and p.attempt > 0
        and p.state not in ('paid', 'failed', 'rejected', 'cancelled')
    )
  returning ${columns}`;
export const finish = sql `
  update reconciliations set finished_at = now() where reconciliation_id = ${'reconciliationId'}::uuid
  returning ${columns}`;
/** Of all runs about the merchant, the one whose balance was told nearest to a moment. */
export const snapshotNear = sql `
  select started_at as at, balance, in_flight from reconciliations
  where merchant_id = ${'merchantId'} and balance is not null
  order by abs(extract(epoch from started_at) - ${'moment'}::float8 / 1000), started_at
  limit 1`;
/** What was paid between two moments, fees included: a payout that is paid changes no more. */
export const paidBetween = sql `
  select coalesce(sum(amount + coalesce(fee, 0)), 0)::bigint as paid from payouts
  where merchant_id = ${'merchantId'} and state = 'paid'
    and updated_at > to_timestamp(${'from'}::float8 / 1000) and updated_at <= to_timestamp(${'to'}::float8 / 1000)`;
