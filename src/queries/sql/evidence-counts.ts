import { type Fragment, sql } from '../../platform/postgres/postgres.ts'

/** How many entries its history and the anomalies about it have: one that is repeated counts once. */
export type EvidenceCount = { id: string; count: number }

const evidenceCounts = (id: Fragment, isAbout: Fragment) => sql<
  { merchantId: string; ids: string[] },
  EvidenceCount
>`
  select given.id, (
    (select count(*) from history h
     where h.merchant_id = ${'merchantId'} and h.${id} = given.id)
    + (select count(*) from anomalies a where a.merchant_id = ${'merchantId'} and ${isAbout})
  )::int as count
  from unnest(${'ids'}::text[]) as given (id)`

/** Changes with each new piece of evidence, also if it moves nothing. So it tells whether a person has seen all of it. */
export const evidenceCountsOfPayouts = evidenceCounts(
  { fragment: 'payout_id' },
  { fragment: 'a.payout_id = given.id' },
)
export const evidenceCountsOfPayins = evidenceCounts(
  { fragment: 'payin_id' },
  { fragment: 'a.order_no = given.id and a.payout_id is null' },
)
