import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

type UtrColumns = { merchantIds: string[]; ids: string[]; utrs: string[]; limit: number }
/** `place`, from 1: of the UTR that it has. */
type Holder = { place: number; merchantId: string; id: string }

/** Who has each of these UTRs, `limit` of each at most, but for those that are named by their keys. */
const othersWithUtrs = (table: Fragment, id: Fragment) => sql<UtrColumns, Holder>`
  select named.place::int, other.merchant_id, other.id
  from unnest(${'utrs'}::text[]) with ordinality as named (utr, place)
  cross join lateral (
    select merchant_id, ${id} as id from ${table} p
    where p.utr is not null and upper(p.utr) = upper(named.utr)
      and (merchant_id, ${id}) not in (select * from unnest(${'merchantIds'}::text[], ${'ids'}::text[]))
    limit ${'limit'}
  ) other`

export const otherPayoutsWithUtrs = othersWithUtrs({ fragment: 'payouts' }, { fragment: 'payout_id' })
export const otherPayinsWithUtrs = othersWithUtrs({ fragment: 'payins' }, { fragment: 'payin_id' })
