import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** How often something was reported about it: in its history, and in anomalies about it. */
export type TimesSaid = { id: string; times: number }

const timesSaid = (id: Fragment, isAbout: Fragment) => sql<{ merchantId: string; ids: string[] }, TimesSaid>`
  select given.id, (
    (select coalesce(sum(times), 0) from history h
     where h.merchant_id = ${'merchantId'} and h.${id} = given.id)
    + (select coalesce(sum(times), 0) from anomalies a where a.merchant_id = ${'merchantId'} and ${isAbout})
  )::int as times
  from unnest(${'ids'}::text[]) as given (id)`

/**
 * Changes with every report about a payout, even one that moves nothing: so a decision can tell whether the person saw every
 * report.
 */
export const timesSaidOfPayouts = timesSaid({ fragment: 'payout_id' }, { fragment: 'a.payout_id = given.id' })
export const timesSaidOfPayins = timesSaid(
  { fragment: 'payin_id' },
  { fragment: 'a.order_no = given.id and a.payout_id is null' },
)
