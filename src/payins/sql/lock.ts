import type { Payin } from '../../domain/payin/payin.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payinColumns } from './columns.ts'

/**
 * Locks payins one after the other, always in primary-key order. Unknown ones give no row. A subquery instead of a join, because
 * a join could run from its other side (docs/decisions/0005).
 */
export const lockById = sql<{ payins: readonly Pick<Payin, 'merchantId' | 'payinId'>[] }, Payin>`
  select ${payinColumns}
  from (
    select * from ${{ rows: 'payins', columns: { merchantId: 'text', payinId: 'text' } }} named
    order by 1, 2
  ) wanted
  cross join lateral (
    select * from payins
    where payins.merchant_id = wanted.merchant_id and payins.payin_id = wanted.payin_id
    for update
  ) p`
