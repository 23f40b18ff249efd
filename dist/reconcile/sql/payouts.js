import { sql } from "../../platform/postgres.js";
/**
 * Puts every payout of the period that was ever attempted on the run's list; those on it stay. One walk along the
 * merchant's payouts, about a second for every million.
 */
export const listPayouts = sql `
  insert into reconciled_payouts (reconciliation_id, payout_id)
  select ${'reconciliationId'}::uuid, payout_id from payouts
  where merchant_id = ${'merchantId'} and attempt > 0
    and accepted_at >= to_timestamp(${'from'}::float8 / 1000) and accepted_at < to_timestamp(${'to'}::float8 / 1000)
  on conflict do nothing`;
export const progress = sql `
  select count(*)::int as listed, count(asked_at)::int as asked from reconciled_payouts
  where reconciliation_id = ${'reconciliationId'}::uuid`;
/** The next ones on the list, after a payoutId, of which the gateway has not told. */
export const unasked = sql `
  select payout_id from reconciled_payouts
  where reconciliation_id = ${'reconciliationId'}::uuid and payout_id > ${'after'} and asked_at is null
  order by payout_id limit ${'limit'}`;
/** Puts back on the list what differs. */
export const askAgain = sql `
  update reconciled_payouts set asked_at = null
  where reconciliation_id = ${'reconciliationId'}::uuid and jsonb_array_length(differences) > 0`;
export const payoutHere = sql `
  select p.state, p.amount, p.fee, p.utr, p.agentpay_order_id, p.order_no, p.version,
    exists (select from reversals r where r.merchant_id = p.merchant_id and r.payout_id = p.payout_id) as reversed
  from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`;
/** What differed before in this run and agrees now counts as settled too, whoever settled it. */
export const keepAnswer = sql `
  update reconciled_payouts
  set asked_at = now(), there_status = ${'status'}, there_amount = ${'amount'}, there_fee = ${'fee'},
      differences = ${'differences'}::jsonb,
      settled = ${'settled'}
        or (coalesce(jsonb_array_length(differences), 0) > 0 and jsonb_array_length(${'differences'}::jsonb) = 0)
  where reconciliation_id = ${'reconciliationId'}::uuid and payout_id = ${'payoutId'}`;
export const differing = sql `
  select p.payout_id, p.order_no, p.amount, p.accepted_at, r.differences
  from reconciled_payouts r join payouts p on p.merchant_id = ${'merchantId'} and p.payout_id = r.payout_id
  where r.reconciliation_id = ${'reconciliationId'}::uuid and jsonb_array_length(r.differences) > 0
  order by p.accepted_at, p.payout_id`;
/** Of what the gateway has answered about, in paise. */
export const totals = sql `
  select
    count(*) filter (where p.state = 'paid')::int as paid_here,
    coalesce(sum(p.amount) filter (where p.state = 'paid'), 0)::bigint as amount_here,
    coalesce(sum(p.fee) filter (where p.state = 'paid'), 0)::bigint as fees_here,
    count(*) filter (where r.there_status = 'success')::int as paid_there,
    coalesce(sum(r.there_amount) filter (where r.there_status = 'success'), 0)::bigint as amount_there,
    coalesce(sum(r.there_fee) filter (where r.there_status = 'success'), 0)::bigint as fees_there,
    count(v.amount)::int as reversed,
    coalesce(sum(v.amount), 0)::bigint as amount_reversed,
    count(*) filter (
      where p.state not in ('paid', 'failed', 'rejected', 'cancelled')
        and coalesce(r.there_status, '') not in ('success', 'failed')
    )::int as open,
    count(*) filter (where r.settled)::int as settled
  from reconciled_payouts r join payouts p on p.merchant_id = ${'merchantId'} and p.payout_id = r.payout_id
    left join reversals v on v.merchant_id = p.merchant_id and v.payout_id = p.payout_id
  where r.reconciliation_id = ${'reconciliationId'}::uuid and r.asked_at is not null`;
export const paidInPeriod = sql `
  select payout_id, order_no, state, amount, utr from payouts
  where merchant_id = ${'merchantId'} and state = 'paid'
    and accepted_at >= to_timestamp(${'from'}::float8 / 1000) and accepted_at < to_timestamp(${'to'}::float8 / 1000)
  order by accepted_at, payout_id`;
/** Neither column has an index of its own for this: one walk along the merchant's payouts. */
export const namedBy = sql `
  select payout_id, order_no, state, amount, utr from payouts
  where merchant_id = ${'merchantId'} and (utr = any(${'utrs'}::text[]) or order_no = any(${'orderNos'}::text[]))
  order by accepted_at, payout_id`;
