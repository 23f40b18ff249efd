import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

type UtrColumns = { merchantIds: string[]; ids: string[]; utrs: string[]; limit: number }
/** `place`: the place of its UTR in `utrs`, from 1. */
type Holder = { place: number; merchantId: string; id: string }

/** The holders of each of these UTRs, at most `limit` of each, except those with the given keys. */
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
