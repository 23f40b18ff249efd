import { sql } from '../../platform/postgres.ts'

type Whose = { merchantId: string }

/** The next ones on the list that are still to be asked about, after a payoutId, with where the ledger stands. */
export const openVersions = sql<
  Whose & { after: string; limit: number },
  { payoutId: string; version: number; attempt: number }
>`
  select r.payout_id, p.version, p.attempt
  from recovered_payouts r
  cross join lateral (
    select version, attempt from payouts
    where payouts.merchant_id = r.merchant_id and payouts.payout_id = r.payout_id
    offset 0
  ) p
  where r.merchant_id = ${'merchantId'} and r.payout_id > ${'after'} and r.found is null
  order by r.payout_id limit ${'limit'}`

/** `untold`: see the column. */
export const keepRecalled = sql<Whose & { payoutId: string; sent: boolean; untold: string | null }>`
  update recovered_payouts set sent = sent or ${'sent'}, untold = ${'untold'}
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/** Attempts that the ledger had lost, the first and the last. */
export const recordAttempts = sql<
  Whose & { payoutId: string; orderNo: string | null; first: number; last: number }
>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  select ${'merchantId'}, ${'payoutId'}, attempt, ${'orderNo'}, 'recovery', now()
  from generate_series(${'first'}::int, ${'last'}::int) as lost (attempt)`
