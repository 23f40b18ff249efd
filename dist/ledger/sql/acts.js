import { sql } from "../../platform/postgres.js";
export const insertAct = sql `
  insert into operator_acts (acted_by, reason, command, os_user, host, merchant_id, subjects, before, after)
  values (${'by'}, ${'reason'}, ${'command'}, ${'osUser'}, ${'host'}, ${'merchantId'}, ${'subjects'}::text[],
          ${'before'}::jsonb, ${'after'}::jsonb)`;
/** The latest first. A merchant's are those about it and those about no merchant; null: all. */
export const latestActs = sql `
  select act_id, at, acted_by as by, reason, command, os_user, host, database_role,
         host(client_address) as client_address, merchant_id, subjects, before, after
  from operator_acts
  where (${'merchantId'}::text is null or merchant_id is null or merchant_id = ${'merchantId'})
    and at >= coalesce(to_timestamp(${'since'}::float8 / 1000), '-infinity')
  order by act_id desc limit ${'limit'}`;
