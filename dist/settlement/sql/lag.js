import { sql } from "../../platform/postgres.js";
/** Dispatch reads it with every claim, and slows down. */
export const reportLag = sql `
  insert into callback_lag (process_id, lag_ms, seen_at) values (${'processId'}, ${'lagMs'}, now())
  on conflict (process_id) do update set lag_ms = excluded.lag_ms, seen_at = excluded.seen_at`;
/** What processes that are long gone left behind. */
export const forgetLag = sql `delete from callback_lag where seen_at < now() - interval '1 hour'`;
