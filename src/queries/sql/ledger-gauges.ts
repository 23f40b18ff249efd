import type { HoldReason } from '../../domain/commands/holds.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Paise } from '../../domain/money.ts'
import { furtherQueues } from '../../ledger/sql/kafka/outbox-queues.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { isCircuitOpen } from './merchants.ts'
import { lateOf } from './overdue.ts'
import { lackOfBalance } from './shortages.ts'
import { snapshotsHeld } from './snapshots.ts'

/** Every row repeats what concerns all merchants; without merchants there is one row, with no merchant. */
export type LedgerGauges = {
  outboxRows: number
  outboxOldestSeconds: number
  outboxRefused: number
  /** Null: this role cannot see the age of other users' snapshots. */
  snapshotsOldestSeconds: number | null
} & (
  | { merchantId: null }
  | {
      merchantId: string
      paused: boolean
      recovering: boolean
      circuitOpen: boolean
      /** Null: nothing is overdue. */
      overdueSeconds: number | null
      available: Paise | null
      snapshotAt: Instant | null
      /** What the balance lacks for the next payout, and how many payouts wait for it; null: nothing. */
      lacking: Paise | null
      waiting: number | null
      submitting: number
      unknown: number
      review: number
      /** Payouts that wait for a person's release, by reason. */
      held: Partial<Record<HoldReason, number>> | null
      /** Unacknowledged anomalies, by kind. */
      anomalies: Record<string, number> | null
      payins: PayinGauge[]
    }
)

/** Payins of one merchant in one state that is no end, and the age of the oldest. */
type PayinGauge = { state: string; count: number; oldestSeconds: number }

/**
 * What a scrape reads, by index only. It counts the outbox, payouts that wait for a person, open anomalies and the payins of each
 * state up to a bound; the outbox's oldest message is among the first of each topic in each shard.
 */
export const ledgerGauges = sql<{ shards: number; countUpTo: number }, LedgerGauges>`
  with recursive queues (shard, topic, done_below) as (
    select shard, '', coalesce((select done_below from relay_shards r where r.shard = all_shards.shard), 0)
    from generate_series(0, ${'shards'}::int - 1) all_shards (shard)
    union all
    ${furtherQueues}
  )
  select o.rows as outbox_rows, o.oldest_seconds as outbox_oldest_seconds, o.refused as outbox_refused,
    o.snapshots_oldest_seconds,
    m.merchant_id, m.paused_at is not null as paused, m.recovering_since is not null as recovering,
    ${isCircuitOpen} as circuit_open, m.available, m.snapshot_at,
    b.lacking, b.waiting,
    v.oldest_seconds as overdue_seconds, d.submitting, d.unknown, r.review, h.held, a.anomalies, c.payins
  from (
    select
      (select least(coalesce(sum(messages), 0), ${'countUpTo'})::int
       from (
         select messages from queues q
         cross join lateral (
           select cardinality(keys) as messages from outbox
           where outbox.shard = q.shard and outbox.topic = q.topic and outbox.position >= q.done_below
           limit ${'countUpTo'}
         ) waiting
         limit ${'countUpTo'}
       ) counted) as rows,
      (select count(*)::int from (select from outbox_refused limit ${'countUpTo'}) counted) as refused,
      (select coalesce(extract(epoch from now() - min(first.at)), 0)::float8
       from queues q
       cross join lateral (
         select at from outbox
         where outbox.shard = q.shard and outbox.topic = q.topic and outbox.position >= q.done_below
         order by outbox.shard, outbox.topic, outbox.position limit 1
       ) first) as oldest_seconds,
      case when pg_has_role('pg_read_all_stats', 'usage')
        then (select coalesce(max(seconds), 0) from (${snapshotsHeld}) held) end as snapshots_oldest_seconds
  ) o
  left join merchants m on true
  left join lateral (
    select count(*) filter (where p.state = 'submitting')::int as submitting,
      count(*) filter (where p.state = 'unknown')::int as unknown
    from payouts p where p.merchant_id = m.merchant_id and p.in_doubt
  ) d on true
  left join lateral (${lateOf}) v on true
  left join lateral (
    select lack.missing as lacking, ready.count as waiting
    from (${lackOfBalance}) lack
    cross join lateral (
      select count(*)::int as count from (
        select from payouts p where p.merchant_id = m.merchant_id and p.ready limit ${'countUpTo'}
      ) counted
    ) ready
    where lack.missing > 0
  ) b on true
  left join lateral (
    select count(*)::int as review
    from (select from payouts p where p.merchant_id = m.merchant_id and p.in_review limit ${'countUpTo'}) counted
  ) r on true
  left join lateral (
    select jsonb_object_agg(reason, count) as held
    from (
      select reason, count(*) as count
      from (
        select p.reason from payouts p where p.merchant_id = m.merchant_id and p.awaits_release
        limit ${'countUpTo'}
      ) counted
      group by reason
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
  ) c on true`
