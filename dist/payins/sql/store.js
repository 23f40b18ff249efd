import { sql } from "../../platform/postgres.js";
/** The payins are locked already, so each stays at the place where it is found. */
export const updatePayins = sql `
  update payins p
  set state = c.state, reason = c.reason, version = c.version, pay_order_id = c.pay_order_id, checkout = c.checkout,
      utr = c.utr, paid_at = to_timestamp(c.paid_at / 1000), unknown_since = to_timestamp(c.unknown_since / 1000),
      queries = c.queries, absences = c.absences, due_at = to_timestamp(c.due_at / 1000), updated_at = now()
  from (
    select given.*,
      (select ctid from payins
       where payins.merchant_id = given.merchant_id and payins.payin_id = given.payin_id) as place
    from unnest(${'merchantIds'}::text[], ${'payinIds'}::text[], ${'states'}::text[], ${'reasons'}::text[],
                ${'versions'}::int[], ${'payOrderIds'}::text[], ${'checkouts'}::jsonb[], ${'utrs'}::text[],
                ${'paidAts'}::float8[], ${'unknownSinces'}::float8[], ${'queries'}::int[], ${'absences'}::int[],
                ${'dueAts'}::float8[])
      as given (merchant_id, payin_id, state, reason, version, pay_order_id, checkout, utr, paid_at, unknown_since,
                queries, absences, due_at)
  ) c
  where p.ctid = c.place`;
export const tellPayinHistory = sql `
  insert into history (merchant_id, payin_id, version, from_state, to_state, reason, source, exchange)
  select * from unnest(${'merchantIds'}::text[], ${'payinIds'}::text[], ${'versions'}::int[], ${'fromStates'}::text[],
                       ${'toStates'}::text[], ${'reasons'}::text[], ${'sources'}::text[], ${'exchanges'}::jsonb[])`;
