import { sql } from "../../platform/postgres.js";
import { payinColumns } from "./columns.js";
/** Payins whose creation's lease has ended, the longest due first. Those that another process holds are left to it. */
export const lockEndedLeases = sql `
  select ${payinColumns}
  from payins p
  where p.due_at <= now() and p.state = 'creating'
  order by p.due_at
  limit ${'limit'}
  for update of p skip locked`;
/**
 * Payins that the gateway is to be asked about now: of each merchant named at most as many as its limit, the longest
 * due first. Those that another process holds are left to it.
 */
export const lockToAsk = sql `
  select ${payinColumns}
  from unnest(${'merchantIds'}::text[], ${'limits'}::int[]) as asked (merchant_id, most)
  cross join lateral (
    select * from payins
    where payins.merchant_id = asked.merchant_id and state <> 'creating' and due_at <= now()
    order by due_at
    limit asked.most
    for update skip locked
  ) p`;
