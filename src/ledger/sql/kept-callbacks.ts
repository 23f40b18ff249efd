import { sql } from '../../platform/postgres.ts'

export type CallbackKind = 'payout' | 'payin'

/** Of one callback; `queryHash` is over its query string as it came. */
export type KeptKey = { merchantId: string; kind: CallbackKind; orderNo: string; queryHash: Buffer }

type Bounds = { mostOfOrder: number; mostOfMerchant: number; most: number }

/**
 * Keeps a callback about an order that the ledger has, once, and where there is room: all limits together bound what a
 * stranger can fill. Counting stops at the limits.
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
    where is_known
      and (select count(*) from kept_callbacks
           where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}) < ${'mostOfOrder'}::int
      and (select count(*) from (select from kept_callbacks where merchant_id = ${'merchantId'}
                                 limit ${'mostOfMerchant'}::int) of_merchant) < ${'mostOfMerchant'}::int
      and (select count(*) from (select from kept_callbacks limit ${'most'}::int) of_all) < ${'most'}::int
    on conflict do nothing
    returning true
  )
  select is_known, exists (select from kept) or exists (
    select from kept_callbacks
    where merchant_id = ${'merchantId'} and kind = ${'kind'} and order_no = ${'orderNo'}
      and query_hash = ${'queryHash'}
  ) as is_kept
  from asked`

/** Of these merchants, in the order of the key, from behind `after` on. */
export const keptCallbacks = sql<
  { kind: CallbackKind; merchantIds: string[]; limit: number } & Omit<KeptKey, 'kind'>,
  KeptKey & { sealed: Buffer }
>`
  select merchant_id, kind, order_no, query_hash, sealed
  from kept_callbacks
  where merchant_id = any(${'merchantIds'}::text[]) and kind = ${'kind'}
    and (merchant_id, order_no, query_hash) > (${'merchantId'}, ${'orderNo'}, ${'queryHash'}::bytea)
  order by merchant_id, order_no, query_hash
  limit ${'limit'}`

type KeptKeys = { kind: CallbackKind; merchantIds: string[]; orderNos: string[]; queryHashes: Buffer[] }

export const forgetKeptCallbacks = sql<KeptKeys>`
  delete from kept_callbacks k
  using unnest(${'merchantIds'}::text[], ${'orderNos'}::text[], ${'queryHashes'}::bytea[])
    as taken (merchant_id, order_no, query_hash)
  where k.merchant_id = taken.merchant_id and k.kind = ${'kind'} and k.order_no = taken.order_no
    and k.query_hash = taken.query_hash`

/** Of merchants that did not come back; what became of their orders, queries tell. */
export const sweepKeptCallbacks = sql<{ days: number }>`
  delete from kept_callbacks where at < now() - ${'days'}::int * interval '1 day'`
