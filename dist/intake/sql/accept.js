import { sql } from "../../platform/postgres.js";
/** Inserts in the order of the arrays, which is the order of age. Ids that exist already are left out of the answer. */
export const insertPayouts = sql `
  insert into payouts (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, version,
                       ready, deadline, due_at)
  select merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason, 1, ready,
         to_timestamp(deadline / 1000), to_timestamp(due_at / 1000)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'batchIds'}::text[], ${'orderNos'}::text[],
              ${'amounts'}::bigint[], ${'currencies'}::text[], ${'priorities'}::smallint[], ${'states'}::text[],
              ${'reasons'}::text[], ${'readies'}::bool[], ${'deadlines'}::float8[], ${'dueAts'}::float8[])
    with ordinality as c (merchant_id, payout_id, batch_id, order_no, amount, currency, priority, state, reason,
                          ready, deadline, due_at, n)
  order by n
  on conflict (merchant_id, payout_id) do nothing
  returning merchant_id, payout_id`;
export const insertCommands = sql `
  insert into payout_commands (merchant_id, payout_id, batch_id, row_number, fingerprint, sealed, faults, traceparent,
                               not_before)
  select merchant_id, payout_id, batch_id, row_number, fingerprint, sealed, faults, traceparent,
         to_timestamp(not_before / 1000)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[], ${'batchIds'}::text[], ${'rowNumbers'}::int[],
              ${'fingerprints'}::bytea[], ${'sealeds'}::bytea[], ${'faults'}::jsonb[],
              ${'traceparents'}::text[], ${'notBefores'}::float8[])
    as c (merchant_id, payout_id, batch_id, row_number, fingerprint, sealed, faults, traceparent, not_before)`;
/** Null for an id that is not known. */
export const fingerprintsOf = sql `
  select merchant_id, payout_id,
    (select fingerprint from payout_commands c
     where c.merchant_id = wanted.merchant_id and c.payout_id = wanted.payout_id)
  from unnest(${'merchantIds'}::text[], ${'payoutIds'}::text[]) as wanted (merchant_id, payout_id)`;
