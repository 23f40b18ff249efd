import { sql } from '../../platform/postgres.ts'

/** Merchants whose ledger was restored and may not know of what was sent (`payoutd recover`). */
export const recoveringMerchants = sql<object, { merchantId: string }>`
  select merchant_id from merchants where recovering_since is not null`
