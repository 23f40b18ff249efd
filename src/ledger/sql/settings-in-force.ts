import { sql } from '../../platform/postgres.ts'

/** Of the gateway settings in force. */
export const settingsInForce = sql<{ merchantId: string }, { settingsHash: string }>`
  select settings_hash from merchants where merchant_id = ${'merchantId'}`
