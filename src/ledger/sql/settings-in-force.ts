import type { Instant } from '../../domain/instant.ts'
import { sql } from '../../platform/postgres/postgres.ts'

/**
 * `mixedUntil`: by base URL, until when that gateway mixed answers up, the latest time; in whole ms, as all times are stored that it
 * is compared with. Null: none ever did.
 */
export type InForce = {
  merchantId: string
  settingsHash: string
  mixedUntil: Readonly<Record<string, Instant>> | null
}

/** The hash of the gateway settings in force of each merchant. The result lacks merchants that never had any. */
export const settingsInForce = sql<{ merchantIds: string[] }, InForce>`
  select m.merchant_id, m.settings_hash,
    (select jsonb_object_agg(base_url, ceil(extract(epoch from least(mixed_until, now() + interval '1 second')) * 1000))
     from mixed_answers) as mixed_until
  from merchants m where m.merchant_id = any(${'merchantIds'}) and m.settings_hash <> ''`
