import { sql } from '../../platform/postgres/postgres.ts'

/** The hash of the gateway settings in force of each merchant. The result lacks merchants that never had any. */
export const settingsInForce = sql<{ merchantIds: string[] }, { merchantId: string; settingsHash: string }>`
  select merchant_id, settings_hash from merchants where merchant_id = any(${'merchantIds'}) and settings_hash <> ''`
