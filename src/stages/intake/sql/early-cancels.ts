import type { PayoutKey } from '../../../domain/identifiers.ts'
import type { Scrubbed } from '../../../domain/mask.ts'

import type { EarlyCancelSource } from '../../../ledger/sql/cancels.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

/** Returns and deletes the remembered cancellations of these payouts. */
export const takeEarlyCancels = sql<
  { fresh: readonly PayoutKey[] },
  PayoutKey & { why: Scrubbed; source: EarlyCancelSource }
>`
  delete from early_cancels e
  using (
    select (select ctid from early_cancels
            where early_cancels.merchant_id = fresh.merchant_id and early_cancels.payout_id = fresh.payout_id) as place
    from ${{ rows: 'fresh', columns: { merchantId: 'text', payoutId: 'text' } }} fresh
  ) remembered
  where e.ctid = remembered.place
  returning e.merchant_id, e.payout_id, e.why, e.source`

/**
 * Orders of which the gateway has made a signed statement before their commands came, which is for the first time. What names no
 * order for sure (`but`) does not count.
 */
export const reportedOrders = sql<
  { orders: readonly (PayoutKey & { orderNo: string | null })[]; but: string; besides: string[] },
  { merchantId: string; orderNo: string; isBesides: boolean }
>`
  select asked.merchant_id, asked.order_no, said.is_besides
  from ${{ rows: 'orders', columns: { merchantId: 'text', payoutId: 'text', orderNo: 'text' } }} asked
  cross join lateral (
    select bool_or(kind = any(${'besides'}::text[])) as is_besides
    from (
      (select kind from anomalies a
       where a.merchant_id = asked.merchant_id and a.order_no = asked.order_no and a.payout_id is null
         and a.source in ('APPLY', 'CALLBACK', 'QUERY') and a.kind <> ${'but'}
       limit 100)
      union all
      (select kind from anomalies a
       where a.merchant_id = asked.merchant_id and a.payout_id = asked.payout_id
         and a.source in ('APPLY', 'CALLBACK', 'QUERY') and a.kind <> ${'but'}
       limit 100)
    ) all_said
  ) said
  where said.is_besides is not null
    and not exists (select from payouts p where p.merchant_id = asked.merchant_id and p.payout_id = asked.payout_id)`
