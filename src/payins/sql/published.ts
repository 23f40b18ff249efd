import { sql } from '../../platform/postgres/postgres.ts'

type PublishedPayinRow = {
  merchantIds: string[]
  payinIds: string[]
  states: string[]
  versions: number[]
  utrs: (string | null)[]
}

/** The positions, from 1, of the payins whose published end differs from the ledger's, or is newer. */
export const behindPublished = sql<PublishedPayinRow, { place: number }>`
  select published.place::int
  from unnest(${'merchantIds'}::text[], ${'payinIds'}::text[], ${'states'}::text[], ${'versions'}::int[], ${'utrs'}::text[])
    with ordinality as published (merchant_id, payin_id, state, version, utr, place)
  cross join lateral (
    select state, version, utr from payins
    where payins.merchant_id = published.merchant_id and payins.payin_id = published.payin_id
    offset 0
  ) p
  where p.state <> published.state or p.version < published.version or upper(p.utr) <> upper(published.utr)`

/** Returns a row if the ledger's own story of the payin has this end. */
export const hasEnd = sql<
  { merchantId: string; payinId: string; version: number; state: string },
  { known: boolean }
>`
  select true as known from history
  where merchant_id = ${'merchantId'} and payin_id = ${'payinId'} and version = ${'version'} and to_state = ${'state'}
  limit 1`
