import type { Logger } from '../platform/log.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'

/** A gateway that mixes up every answer need not have each written. */
const noteMixed = sql<{ merchantId: string; forMs: number }>`
  update merchants set answers_mixed_until = now() + ${'forMs'} * interval '1 ms'
  where merchant_id = ${'merchantId'}
    and coalesce(answers_mixed_until < now() + (${'forMs'} - 1000) * interval '1 ms', true)`

/**
 * For a gateway client of a merchant: notes that the gateway, or something before it, mixes answers up, because an answer names
 * another order than the one asked about. For so many ms no "not found" of this merchant counts, in any process. Never rejects.
 */
export const mixedAnswers =
  (merchantId: string, db: Database, log: Logger) =>
  async (forMs: number): Promise<void> => {
    try {
      await db.run(noteMixed, { merchantId, forMs })
      log.warn(
        { merchantId, forMs },
        'an answer of the gateway is about another order than the one asked about: for this time no order counts as absent',
      )
    } catch (error) {
      log.error({ err: error, merchantId }, 'not noted that an answer of the gateway is about another order')
    }
  }
