import type { Instant } from '../../../domain/instant.ts'
import { sql } from '../../../platform/postgres/postgres.ts'
import type { CallbackKind } from './kept-callbacks.ts'

type LostKey = { merchantId: string; orderNo: string }

/**
 * An order that lost a callback. `payoutId`: empty for a payin; `accountId`: where payoutd sent it; `isAskedAbout`: it is open,
 * so payoutd asks the gateway about it anyway; `notFoundCount`: how often the gateway has since answered that it has no such order;
 * `again`: when a turn takes it once more, as the database writes it.
 */
export type LostCallback = LostKey & {
  payoutId: string
  accountId: string | null
  isAskedAbout: boolean
  notFoundCount: number
  again: string
  askedAt: Instant
}

/**
 * Makes payoutd ask the gateway about these orders after these waits, as if a callback had been lost; an earlier time stays.
 * If a query is under way, payoutd asks again afterwards, because that answer may be out of date.
 */
export const askAboutOrders = sql<{ kind: CallbackKind; orders: readonly (LostKey & { waitMs: number })[] }>`
  insert into lost_callbacks as l (merchant_id, kind, order_no, ask_at)
  select distinct merchant_id, ${'kind'}, order_no, now() + wait_ms * interval '1 millisecond'
  from ${{ rows: 'orders', columns: { merchantId: 'text', orderNo: 'text', waitMs: 'float8' } }} o
  order by 1, 3
  on conflict (merchant_id, kind, order_no) do update set ask_at = excluded.ask_at where l.ask_at > excluded.ask_at`

/**
 * The same at once for those of the next payouts in review, after a payoutId, that wait for a person because the settings had no
 * account of theirs: these accounts are in the settings now, so the gateway can say what became of them. `last`: the payoutId to
 * continue after; null: that was the last page.
 */
export const askAtAccounts = sql<
  { merchantId: string; accountIds: string[]; after: string; limit: number },
  { last: string | null }
>`
  with page as materialized (
    select payout_id, order_no, account_id, reason from payouts
    where merchant_id = ${'merchantId'} and in_review and payout_id > ${'after'}
    order by payout_id limit ${'limit'}
  ), noted as (
    insert into lost_callbacks as l (merchant_id, kind, order_no, ask_at)
    select ${'merchantId'}, 'payout', order_no, now() from page
    where reason = 'account-unknown' and account_id = any(${'accountIds'}) and order_no is not null
    order by order_no
    on conflict (merchant_id, kind, order_no) do update set ask_at = excluded.ask_at
      where l.ask_at > excluded.ask_at and l.not_found_count = 0
  )
  select max(payout_id) as last from page`

/** Those of these merchants that have due orders. */
export const merchantsWithLost = sql<{ kind: CallbackKind; merchantIds: string[] }, { merchantId: string }>`
  select merchant_id from unnest(${'merchantIds'}::text[]) as asked (merchant_id)
  where exists (
    select from lost_callbacks l
    where l.merchant_id = asked.merchant_id and l.kind = ${'kind'} and l.ask_at <= now()
  )`

/** Takes due orders of one merchant, the longest due first. Skips those that another process is taking. */
export const takeLostCallbacks = sql<
  { kind: CallbackKind; merchantId: string; limit: number; againMs: number },
  LostCallback
>`
  with due as (
    select ctid as place from lost_callbacks
    where merchant_id = ${'merchantId'} and kind = ${'kind'} and ask_at <= now()
    order by ask_at
    limit ${'limit'}
    for update skip locked
  ), taken as (
    update lost_callbacks l set ask_at = now() + ${'againMs'} * interval '1 millisecond'
    from due where l.ctid = due.place
    returning l.merchant_id, l.order_no, l.not_found_count, l.ask_at::text as again
  )
  select taken.merchant_id, taken.order_no, coalesce(o.payout_id, '') as payout_id,
    coalesce(o.account_id, i.account_id) as account_id,
    coalesce(o.state in ('unknown', 'processing'), i.state in ('creating', 'unknown', 'open', 'review'), false) as is_asked_about,
    taken.not_found_count, taken.again, now() as asked_at
  from taken
  left join payouts o on ${'kind'} = 'payout' and o.merchant_id = taken.merchant_id and o.order_no = taken.order_no
  left join payins i on ${'kind'} = 'payin' and i.merchant_id = taken.merchant_id and i.payin_id = taken.order_no`

/** Leaves the row, and returns none, if another callback was lost meanwhile. `putOffLostCallback` leaves it, too. */
export const deleteLostCallback = sql<LostKey & { kind: CallbackKind; again: string }, LostKey>`
  delete from lost_callbacks
  where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}
    and ask_at = ${'again'}::timestamptz
  returning merchant_id, order_no`

export const putOffLostCallback = sql<
  LostKey & { kind: CallbackKind; again: string; notFoundCount: number; waitMs: number }
>`
  update lost_callbacks
  set not_found_count = ${'notFoundCount'}::int, ask_at = now() + ${'waitMs'} * interval '1 millisecond'
  where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}
    and ask_at = ${'again'}::timestamptz`
