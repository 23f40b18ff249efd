import { sql } from '../../platform/postgres.ts'

type Whose = { merchantId: string }

/** The next ones on the list that are still to be asked about, after a payoutId, with their versions. */
export const openVersions = sql<
  Whose & { after: string; limit: number },
  { payoutId: string; version: number }
>`
  select r.payout_id,
    (select version from payouts p where p.merchant_id = r.merchant_id and p.payout_id = r.payout_id)
  from recovered_payouts r
  where r.merchant_id = ${'merchantId'} and r.payout_id > ${'after'} and r.found is null
  order by r.payout_id limit ${'limit'}`

/** The payout is locked, and stays in its state. */
export const raiseVersion = sql<Whose & { payoutId: string; version: number; attempt: number }>`
  update payouts set version = ${'version'}, attempt = ${'attempt'}, updated_at = now()
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

export const keepSent = sql<Whose & { payoutId: string }>`
  update recovered_payouts set sent = true where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`

/** Attempts that the ledger had lost, the first and the last. */
export const recordAttempts = sql<
  Whose & { payoutId: string; orderNo: string | null; first: number; last: number }
>`
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  select ${'merchantId'}, ${'payoutId'}, attempt, ${'orderNo'}, 'recovery', now()
  from generate_series(${'first'}::int, ${'last'}::int) as lost (attempt)`
