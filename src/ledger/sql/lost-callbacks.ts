import type { Instant } from '../../payout/instant.ts'
import { sql } from '../../platform/postgres.ts'
import type { CallbackKind } from './kept-callbacks.ts'

/**
 * An order of which a callback was lost. `payoutId`: of a payout; `accountId`: where it was sent. `again`: when it is taken
 * once more, as the database writes it.
 */
export type LostCallback = {
  merchantId: string
  orderNo: string
  payoutId: string
  accountId: string | null
  again: string
  askedAt: Instant
}

/** Of each merchant named at most as many as its limit, the longest due first; those that another process takes are left to it. */
export const takeLostCallbacks = sql<
  { kind: CallbackKind; merchantIds: string[]; limits: number[]; againMs: number },
  LostCallback
>`
  with due as (
    select l.ctid as place
    from unnest(${'merchantIds'}::text[], ${'limits'}::int[]) as asked (merchant_id, most)
    cross join lateral (
      select ctid from lost_callbacks
      where lost_callbacks.merchant_id = asked.merchant_id and kind = ${'kind'} and ask_at <= now()
      order by ask_at
      limit asked.most
      for update skip locked
    ) l
  ), taken as (
    update lost_callbacks l set ask_at = now() + ${'againMs'} * interval '1 millisecond'
    from due where l.ctid = due.place
    returning l.merchant_id, l.order_no, l.ask_at::text as again
  )
  select taken.merchant_id, taken.order_no, coalesce(o.payout_id, '') as payout_id,
    coalesce(o.account_id, i.account_id) as account_id, taken.again, now() as asked_at
  from taken
  left join payouts o on ${'kind'} = 'payout' and o.merchant_id = taken.merchant_id and o.order_no = taken.order_no
  left join payins i on ${'kind'} = 'payin' and i.merchant_id = taken.merchant_id and i.payin_id = taken.order_no`

export const forgetLostCallback = sql<{
  kind: CallbackKind
  merchantId: string
  orderNo: string
  again: string
}>`
  delete from lost_callbacks
  where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}
    and ask_at = ${'again'}::timestamptz`
