import { sql } from "../../platform/postgres.js";
/** Merchants whose ledger was restored and may not know of what was sent (`payoutd recover`). */
export const recoveringMerchants = sql `
  select merchant_id from merchants where recovering_since is not null`;
