import { sql } from '../../platform/postgres/postgres.ts'

/** Merchants whose ledger was restored and may lack what was sent (`payoutd recover`). */
export const recoveringMerchants = sql<object, { merchantId: string }>`
  select merchant_id from merchants where recovering_since is not null`

/** Blocks a transaction that takes a fence down (`lockFence`), but no claim. */
export const lockFences = sql<{ merchantIds: string[] }, { merchantId: string; fenced: boolean }>`
  select merchant_id, recovering_since is not null as fenced from merchants
  where merchant_id = any(${'merchantIds'}::text[]) order by merchant_id
  for key share`
