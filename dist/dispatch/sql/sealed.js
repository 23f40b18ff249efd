import { payoutColumns } from "../../ledger/sql/columns.js";
import { sql } from "../../platform/postgres.js";
/** Payouts that wait for a key, in the order of the primary key, from the one behind the given on. */
export const lockAwaitingKey = sql `
  select ${payoutColumns}
  from payouts p
  where p.awaits_key and (p.merchant_id, p.payout_id) > (${'merchantId'}, ${'payoutId'})
  order by p.merchant_id, p.payout_id
  limit ${'limit'}
  for update`;
