import { payoutColumns } from "../../ledger/sql/columns.js";
import { sql } from "../../platform/postgres.js";
/** The next payouts of one merchant: priority, then age. Its cost does not grow with the backlog. */
export const lockCandidates = sql `
  select ${payoutColumns},
    (select sealed from payout_commands c where c.merchant_id = p.merchant_id and c.payout_id = p.payout_id)
  from payouts p
  where p.merchant_id = ${'merchantId'} and p.ready and p.deadline > now()
  order by p.priority desc, p.seq
  limit ${'limit'}
  for update skip locked`;
export const openAttempts = sql `
  insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until)
  select ${'merchantId'}, payout_id, attempt, order_no, ${'owner'}, to_timestamp(${'leaseUntil'}::float8 / 1000)
  from unnest(${'payoutIds'}::text[], ${'attempts'}::int[], ${'orderNos'}::text[]) as a (payout_id, attempt, order_no)`;
