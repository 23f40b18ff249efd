import { sql } from "../../platform/postgres.js";
/**
 * Lets the commands of one merchant in one transaction after the other, until it ends: two that came in the
 * same moment by two partitions would not see each other.
 */
export const takeTurns = sql `
  select pg_advisory_xact_lock(hashtextextended('intake of ' || merchant_id, 0))
  from (select distinct unnest(${'merchantIds'}::text[]) as merchant_id order by 1) merchants`;
/** A payment of the same, in a batch that sorts before or behind the one asked about. */
const sameIn = (batch) => ({
    fragment: `(
    select e.payout_id, nullif(e.batch, e.payout_id) as batch_id, e.pays_at
    from payments e
    where e.merchant_id = asked.merchant_id and e.beneficiary_hash = asked.beneficiary_hash
      and e.amount = asked.amount and e.batch ${batch} asked.batch
      and e.pays_at >= to_timestamp(asked.period_from / 1000) and e.pays_at < to_timestamp(asked.period_to / 1000)
      and (select state not in ('failed', 'cancelled') from payouts p
           where p.merchant_id = e.merchant_id and p.payout_id = e.payout_id)
    limit 1
  )`,
});
/** Of a row `b` of beneficiary_payments. */
const isPaid = {
    fragment: `(select state from payouts p where p.merchant_id = b.merchant_id and p.payout_id = b.payout_id) = 'paid'`,
};
/**
 * Keeps what later payouts are compared with, and compares these with what was kept before: a row for each reason to
 * hold one, none for most. By key alone. The two ways past a payout's own batch keep a large one to a single
 * beneficiary from being read again for every row.
 */
export const keepAndCompare = sql `
  with asked as materialized (
    select merchant_id, payout_id, coalesce(batch_id, payout_id) as batch, amount,
      to_timestamp(pays_at / 1000) as pays_at, beneficiary_hash, beneficiary_id_hash, period_from, period_to,
      changes_wanted
    from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'batchIds'}::text[], ${'amounts'}::bigint[],
                ${'paysAts'}::float8[], ${'beneficiaryHashes'}::bytea[], ${'beneficiaryIdHashes'}::bytea[],
                ${'periodFroms'}::float8[], ${'periodTos'}::float8[], ${'changesWanted'}::bool[])
      as p (merchant_id, payout_id, batch_id, amount, pays_at, beneficiary_hash, beneficiary_id_hash, period_from,
            period_to, changes_wanted)
  ), kept as (
    insert into payments (merchant_id, beneficiary_hash, amount, batch, pays_at, payout_id)
    select merchant_id, beneficiary_hash, amount, batch, pays_at, payout_id from asked
  ), named as (
    insert into beneficiary_payments (merchant_id, beneficiary_id_hash, pays_at, payout_id, beneficiary_hash)
    select merchant_id, beneficiary_id_hash, pays_at, payout_id, beneficiary_hash
    from asked where beneficiary_id_hash is not null
  )
  select asked.merchant_id, asked.payout_id, found.reason, found.earlier_payout_id, found.earlier_batch_id, found.since
  from asked
  cross join lateral (
    (
      select 'duplicate' as reason, e.payout_id as earlier_payout_id, e.batch_id as earlier_batch_id, e.pays_at as since
      from (${sameIn('<')} union all ${sameIn('>')}) e
      order by e.pays_at limit 1
    )
    union all
    select 'beneficiary-changed', last.payout_id,
      (select batch_id from payouts p
       where p.merchant_id = asked.merchant_id and p.payout_id = last.payout_id),
      (select min(b.pays_at) from beneficiary_payments b
       where b.merchant_id = asked.merchant_id and b.beneficiary_id_hash = asked.beneficiary_id_hash
         and b.beneficiary_hash = last.beneficiary_hash and ${isPaid})
    from (
      select b.payout_id, b.beneficiary_hash from beneficiary_payments b
      where asked.changes_wanted
        and b.merchant_id = asked.merchant_id and b.beneficiary_id_hash = asked.beneficiary_id_hash and ${isPaid}
      order by b.pays_at desc limit 1
    ) last
    where last.beneficiary_hash <> asked.beneficiary_hash
  ) found`;
/** Under which other batch files were declared first. Their own declaration may be still to come. */
export const earlierFiles = sql `
  select asked.merchant_id, asked.batch_id, asked.file_hash, f.batch_id as earlier_batch_id, f.declared_at as since
  from unnest(${'merchantIds'}::text[], ${'batchIds'}::text[], ${'fileHashes'}::text[])
    as asked (merchant_id, batch_id, file_hash)
  cross join lateral (
    select batch_id, declared_at from batches
    where batches.merchant_id = asked.merchant_id and batches.file_hash = asked.file_hash
      and batches.batch_id <> asked.batch_id
      and declared_at < coalesce(
        (select own.declared_at from batches own
         where own.merchant_id = asked.merchant_id and own.file_hash = asked.file_hash
           and own.batch_id = asked.batch_id),
        'infinity')
    order by declared_at limit 1
  ) f`;
/** Payouts that this transaction inserted, each once. */
export const hold = sql `
  update payouts p set state = 'held', reason = held.reason, ready = false, due_at = p.deadline
  from (
    select given.reason,
      (select ctid from payouts
       where payouts.merchant_id = given.merchant_id and payouts.payout_id = given.payout_id) as place
    from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'reasons'}::text[])
      as given (merchant_id, payout_id, reason)
  ) held
  where p.ctid = held.place`;
export const keepHolds = sql `
  insert into holds (merchant_id, payout_id, reason, earlier_payout_id, earlier_batch_id, pays_at, since)
  select merchant_id, payout_id, reason, earlier_payout_id, earlier_batch_id, to_timestamp(pays_at / 1000),
    to_timestamp(since / 1000)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'reasons'}::text[], ${'earlierPayoutIds'}::text[],
              ${'earlierBatchIds'}::text[], ${'paysAts'}::float8[], ${'sinces'}::float8[])
    as h (merchant_id, payout_id, reason, earlier_payout_id, earlier_batch_id, pays_at, since)`;
