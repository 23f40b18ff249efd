import { type Fragment, sql } from '../../platform/postgres/postgres.ts'
import type { Subject } from '../evidence/repeats.ts'

/** `place`: the place of its UTR in `utrs`, from 1. */
type Holder = Subject & { place: number }

/** The holders of each of these UTRs, at most `limit` of each, except the named ones. */
const othersWithUtrs = (table: Fragment, id: Fragment) => sql<
  { named: readonly Subject[]; utrs: string[]; limit: number },
  Holder
>`
  select given.place::int, other.merchant_id, other.id
  from unnest(${'utrs'}::text[]) with ordinality as given (utr, place)
  cross join lateral (
    select merchant_id, ${id} as id from ${table} p
    where p.utr is not null and upper(p.utr) = upper(given.utr)
      and (merchant_id, ${id}) not in ${{ rows: 'named', columns: { merchantId: 'text', id: 'text' } }}
    limit ${'limit'}
  ) other`

export const otherPayoutsWithUtrs = othersWithUtrs({ fragment: 'payouts' }, { fragment: 'payout_id' })
export const otherPayinsWithUtrs = othersWithUtrs({ fragment: 'payins' }, { fragment: 'payin_id' })
