import type { Scrubbed } from '../../../domain/mask.ts'
import type { EarlyCancelSource } from '../../../ledger/sql/cancels.ts'
import { sql } from '../../../platform/postgres/postgres.ts'

type CancelKeys = { merchantIds: string[]; payoutIds: string[] }

/** Cancellations that came before these payouts, which are none any more. */
export const takeEarlyCancels = sql<
  CancelKeys,
  { merchantId: string; payoutId: string; why: Scrubbed; source: EarlyCancelSource }
>`
  delete from early_cancels e
  using (
    select (select ctid from early_cancels
            where early_cancels.merchant_id = fresh.merchant_id and early_cancels.payout_id = fresh.payout_id) as place
    from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as fresh (merchant_id, payout_id)
  ) remembered
  where e.ctid = remembered.place
  returning e.merchant_id, e.payout_id, e.why, e.source`

/** Orders that the gateway has reported before their commands came. */
export const reportedOrders = sql<
  { merchantIds: string[]; orderNos: (string | null)[] },
  { merchantId: string; orderNo: string }
>`
  select merchant_id, order_no
  from unnest(${'merchantIds'}::text[], ${'orderNos'}::text[]) as asked (merchant_id, order_no)
  where (select true from anomalies a
         where a.merchant_id = asked.merchant_id and a.order_no = asked.order_no and a.payout_id is null
           and a.kind = 'unknown-order'
         limit 1)`
