import { sql } from "../../platform/postgres.js";
/**
 * What a scrape reads, by index only: the outbox, open anomalies and the payins of each state are counted up to a
 * bound, and the outbox's
 * oldest message is among the first of each shard.
 */
export const ledgerGauges = sql `
  select o.rows as outbox_rows, o.oldest_seconds as outbox_oldest_seconds, o.refused as outbox_refused,
    m.merchant_id, m.paused_at is not null as paused, m.recovering_since is not null as recovering,
    coalesce(m.circuit_open_until > now(), false) as circuit_open, m.available, m.snapshot_at, d.submitting, d.unknown, r.review, h.held, a.anomalies, c.payins
  from (
    select
      (select count(*)::int from (select from outbox limit ${'countUpTo'}) counted) as rows,
      (select count(*)::int from (select from outbox_refused limit ${'countUpTo'}) counted) as refused,
      (select coalesce(extract(epoch from now() - min(first.at)), 0)::float8
       from generate_series(0, ${'shards'}::int - 1) as s (shard)
       cross join lateral (
         select at from outbox where outbox.shard = s.shard order by position limit 1
       ) first) as oldest_seconds
  ) o
  left join merchants m on true
  left join lateral (
    select count(*) filter (where p.state = 'submitting')::int as submitting,
      count(*) filter (where p.state = 'unknown')::int as unknown
    from payouts p where p.merchant_id = m.merchant_id and p.in_doubt
  ) d on true
  left join lateral (
    select count(*)::int as review from payouts p where p.merchant_id = m.merchant_id and p.in_review
  ) r on true
  left join lateral (
    select jsonb_object_agg(reason, count) as held
    from (
      select p.reason, count(*) as count from payouts p where p.merchant_id = m.merchant_id and p.awaits_release
      group by p.reason
    ) reasons
  ) h on true
  left join lateral (
    select jsonb_object_agg(kind, count) as anomalies
    from (
      select kind, count(*) as count
      from (
        select kind from anomalies
        where anomalies.merchant_id = m.merchant_id and acknowledged_at is null
        limit ${'countUpTo'}
      ) open
      group by kind
    ) kinds
  ) a on true
  left join lateral (
    select jsonb_agg(jsonb_build_object('state', s.state, 'count', found.count, 'oldestSeconds', found.oldest_seconds))
      as payins
    from unnest(array['creating', 'unknown', 'open', 'review']) as s (state)
    cross join lateral (
      select count(*)::int as count,
        coalesce(extract(epoch from now() - min(waiting.created_at)), 0)::float8 as oldest_seconds
      from (
        select created_at from payins p
        where p.merchant_id = m.merchant_id and p.state = s.state
          and p.state in ('creating', 'unknown', 'open', 'review')
        order by created_at limit ${'countUpTo'}
      ) waiting
    ) found
  ) c on true`;
