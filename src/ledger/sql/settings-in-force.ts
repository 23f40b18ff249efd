import { sql } from '../../platform/postgres/postgres.ts'

/** Of the gateway settings in force of some merchants; those of whom none ever were are missing. */
export const settingsInForce = sql<{ merchantIds: string[] }, { merchantId: string; settingsHash: string }>`
  select merchant_id, settings_hash from merchants where merchant_id = any(${'merchantIds'}) and settings_hash <> ''`
