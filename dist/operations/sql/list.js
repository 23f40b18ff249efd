import { sql } from "../../platform/postgres.js";
const listed = {
    fragment: `p.payout_id, p.batch_id, c.row_number, p.amount, p.state, p.reason, p.updated_at,
    c.not_before, p.deadline,
    (select earlier_payout_id from holds h
     where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.reason = p.reason),
    (select earlier_batch_id from holds h
     where h.merchant_id = p.merchant_id and h.payout_id = p.payout_id and h.reason = p.reason),
    (select count(*)::int from anomalies a
     where a.merchant_id = p.merchant_id and a.payout_id = p.payout_id and a.kind = 'same-id-other-content') as contradictions
    from payouts p join payout_commands c on c.merchant_id = p.merchant_id and c.payout_id = p.payout_id`,
};
export const payoutsOfBatch = sql `
  select ${listed}
  where p.merchant_id = ${'merchantId'} and p.batch_id = ${'batchId'} and p.state = any(${'states'}::text[])
  order by p.seq limit ${'limit'}`;
/** Through all of the merchant's payouts, however old. */
export const payoutsInStates = sql `
  select ${listed}
  where p.merchant_id = ${'merchantId'} and p.state = any(${'states'}::text[])
  order by p.seq limit ${'limit'}`;
