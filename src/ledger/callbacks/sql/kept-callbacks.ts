import { sql } from '../../../platform/postgres/postgres.ts'

export type CallbackKind = 'payout' | 'payin'

/** The key of one callback; `queryHash` is over its query string as it came. */
export type KeptKey = { merchantId: string; kind: CallbackKind; orderNo: string; queryHash: Buffer }

/** `arrived`: when it came, as the database writes it, to the microsecond. */
type KeptArrival = { arrived: string }

type Bounds = { mostOfOrder: number; mostOfMerchant: number; most: number }

/**
 * Keeps a callback about a known order, once, if there is room: the limits bound how much a stranger can store. Counting stops
 * at the limits. The `case` keeps Postgres from counting first for an unknown order (200 ms when the table is full). If there
 * is no room, notes that a callback of the order was lost.
 */
export const keepCallback = sql<KeptKey & { sealed: Buffer } & Bounds, { isKnown: boolean; isKept: boolean }>`
  with asked as materialized (
    select case ${'kind'}
      when 'payout' then exists (
        select from payouts where merchant_id = ${'merchantId'} and order_no = ${'orderNo'})
      else exists (
        select from payins where merchant_id = ${'merchantId'} and payin_id = ${'orderNo'})
    end as is_known
  ), kept as (
    insert into kept_callbacks (merchant_id, kind, order_no, query_hash, sealed)
    select ${'merchantId'}, ${'kind'}, ${'orderNo'}, ${'queryHash'}, ${'sealed'}
    from asked
    where case when is_known then
      (select count(*) from kept_callbacks
       where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}) < ${'mostOfOrder'}::int
      and (select count(*) from (select from kept_callbacks where merchant_id = ${'merchantId'}
                                 limit ${'mostOfMerchant'}::int) of_merchant) < ${'mostOfMerchant'}::int
      and (select count(*) from (select from kept_callbacks limit ${'most'}::int) of_all) < ${'most'}::int
    end
    on conflict do nothing
    returning true
  ), outcome as (
    select is_known, exists (select from kept) or exists (
      select from kept_callbacks
      where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}
        and query_hash = ${'queryHash'}
    ) as is_kept
    from asked
  ), lost as (
    insert into lost_callbacks (merchant_id, kind, order_no)
    select ${'merchantId'}, ${'kind'}, ${'orderNo'} from outcome where is_known and not is_kept
    on conflict (merchant_id, kind, order_no) do update set ask_at = now(), not_found_count = 0
  )
  select is_known, is_kept from outcome`

/** Kept callbacks of these merchants, in the order in which they came, after the given one. */
export const keptCallbacks = sql<
  { kind: CallbackKind; merchantIds: string[]; limit: number } & KeptArrival & Omit<KeptKey, 'kind'>,
  KeptKey & KeptArrival & { sealed: Buffer }
>`
  select merchant_id, kind, order_no, query_hash, at::text as arrived, sealed
  from kept_callbacks
  where merchant_id = any(${'merchantIds'}::text[]) and kind = ${'kind'}
    and (at, merchant_id, order_no, query_hash)
      > (${'arrived'}::timestamptz, ${'merchantId'}, ${'orderNo'}, ${'queryHash'}::bytea)
  order by at, merchant_id, order_no, query_hash
  limit ${'limit'}`

/** One process at a time handles the kept callbacks of a kind. Returns no row while another process does. */
export const takeTurn = sql<{ kind: CallbackKind; forMs: number }, { holder: string }>`
  insert into kept_callback_turns as t (kind, holder, until)
  values (${'kind'}, gen_random_uuid(), now() + ${'forMs'} * interval '1 millisecond')
  on conflict (kind) do update set holder = excluded.holder, until = excluded.until
  where t.until <= now() or t.until > now() + 2 * ${'forMs'} * interval '1 millisecond'
  returning holder`

export const endTurn = sql<{ kind: CallbackKind; holder: string }>`
  delete from kept_callback_turns where kind = ${'kind'} and holder = ${'holder'}`

/** Leaves rows that another transaction has locked; they are handled once more. */
export const deleteKeptCallbacks = sql<{ kind: CallbackKind; taken: readonly Omit<KeptKey, 'kind'>[] }>`
  delete from kept_callbacks where ctid = any (array(
    select free.place
    from ${{ rows: 'taken', columns: { merchantId: 'text', orderNo: 'text', queryHash: 'bytea' } }} taken
    cross join lateral (
      select k.ctid as place from kept_callbacks k
      where k.merchant_id = taken.merchant_id and k.kind = ${'kind'} and k.order_no = taken.order_no
        and k.query_hash = taken.query_hash
      for update skip locked
    ) free
  ))`

/**
 * Deletes some callbacks of merchants that did not come back, and some that never verified, except rows that another
 * transaction has locked. payoutd asks the gateway about their orders instead.
 */
export const sweepKeptCallbacks = sql<{ days: number; limit: number }, { swept: number }>`
  with dropped as (
    delete from kept_callbacks where ctid = any (array(
      select ctid from kept_callbacks where at < now() - ${'days'}::int * interval '1 day'
      limit ${'limit'} for update skip locked
    )) returning merchant_id, kind, order_no
  ), lost as (
    insert into lost_callbacks (merchant_id, kind, order_no)
    select distinct merchant_id, kind, order_no from dropped
    on conflict do nothing
  )
  select count(*)::int as swept from dropped`
