import { payoutColumns } from "../../ledger/sql/columns.js";
import { sql } from "../../platform/postgres.js";
/** Puts every payout that has not ended on the list; those on it stay. One walk along the merchant's payouts. */
export const listOpenPayouts = sql `
  insert into recovered_payouts (merchant_id, payout_id)
  select merchant_id, payout_id from payouts
  where merchant_id = ${'merchantId'} and state not in ('paid', 'failed', 'rejected', 'cancelled')
  on conflict do nothing`;
export const countOpenPayouts = sql `
  select count(*)::int as count from payouts
  where merchant_id = ${'merchantId'} and state not in ('paid', 'failed', 'rejected', 'cancelled')`;
/** The next ones on the list, after a payoutId, that are still to be asked about. */
export const unasked = sql `
  select payout_id from recovered_payouts
  where merchant_id = ${'merchantId'} and payout_id > ${'after'} and found is null
  order by payout_id limit ${'limit'}`;
export const progress = sql `
  select count(*)::int as listed, count(found)::int as asked from recovered_payouts
  where merchant_id = ${'merchantId'}`;
export const tally = sql `
  select found, count(*)::int as count from recovered_payouts
  where merchant_id = ${'merchantId'} group by found order by found`;
export const payoutById = sql `
  select ${payoutColumns} from payouts p where p.merchant_id = ${'merchantId'} and p.payout_id = ${'payoutId'}`;
export const keepFound = sql `
  update recovered_payouts set found = ${'found'}
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}`;
/** Counts a "not found"; so many of them are believed. */
export const keepAbsence = sql `
  update recovered_payouts
  set absences = absences + 1, found = case when absences + 1 >= ${'confirmations'} then ${'found'} end
  where merchant_id = ${'merchantId'} and payout_id = ${'payoutId'}
  returning found is not null as believed, sent`;
export const forgetList = sql `delete from recovered_payouts where merchant_id = ${'merchantId'}`;
/** Those that were to be cancelled while the merchant was fenced, in the order of the primary key. */
export const lockCancelRequested = sql `
  select ${payoutColumns} from payouts p
  where p.merchant_id = ${'merchantId'} and p.state = 'held' and p.reason = ${'reason'}
  order by p.payout_id
  for update`;
