import { paise } from "../payout/money.js";
import { sql } from "../platform/postgres.js";
/** A callback is kept as a request, an answer as a response. */
const everything = sql `
  select p.merchant_id, p.payout_id, p.order_no, p.amount, p.state, p.version,
    (select coalesce(json_agg(a.order_no order by a.attempt), '[]') from attempts a
     where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id) as attempts,
    (select coalesce(json_agg(json_build_object('version', h.version, 'toState', h.to_state, 'source', h.source,
       'times', h.times,
       'said', coalesce(h.exchange -> 'response', h.exchange -> 'request')) order by h.at, h.version nulls last), '[]')
     from history h where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id) as history
  from payouts p where p.merchant_id = ${'merchantId'} order by p.payout_id`;
/** Everything of one merchant, in the order of the payoutIds. */
export const readKept = async (db, merchantId) => (await db.run(everything, { merchantId })).map((row) => ({ ...row, amount: paise(row.amount) }));
