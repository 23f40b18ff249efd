import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/** `answersMixedUntil`: until when no "not found" counts, because an answer was about another order. Null: none ever was. */
export type InForce = { merchantId: string; settingsHash: string; answersMixedUntil: Instant | null }

/** The hash of the gateway settings in force of each merchant. The result lacks merchants that never had any. */
export const settingsInForce = sql<{ merchantIds: string[] }, InForce>`
  select merchant_id, settings_hash, answers_mixed_until from merchants where merchant_id = any(${'merchantIds'}) and settings_hash <> ''`
