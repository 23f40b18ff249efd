import type { PublishedPayin } from '../../domain/payin/read-back.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { PayinKey } from '../store.ts'

/** The positions, from 1, of the payins whose published end differs from the ledger's, or is newer. */
export const behindPublished = sql<
  { published: readonly (PayinKey & Pick<PublishedPayin, 'status' | 'version' | 'utr'>)[] },
  { place: number }
>`
  select published.n::int as place
  from ${{
    rows: 'published',
    columns: { merchantId: 'text', payinId: 'text', status: 'text', version: 'int', utr: 'text' },
    ordered: true,
  }} published
  cross join lateral (
    select state, version, utr from payins
    where payins.merchant_id = published.merchant_id and payins.payin_id = published.payin_id
    offset 0
  ) p
  where p.state <> published.status or p.version < published.version or upper(p.utr) <> upper(published.utr)`

/** Returns a row if the ledger's own story of the payin has this end. */
export const hasEnd = sql<
  { merchantId: string; payinId: string; version: number; state: string },
  { known: boolean }
>`
  select true as known from history
  where merchant_id = ${'merchantId'} and payin_id = ${'payinId'} and version = ${'version'} and to_state = ${'state'}
  limit 1`
