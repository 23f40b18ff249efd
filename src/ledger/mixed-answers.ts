import type { Logger } from '../platform/log.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'

/** As the gateway's client tells it (`MixedAnswer` of src/gateway/accounts.ts). */
type Mixed = { baseUrl: string; orderNo: string | null }

/** A gateway that mixes up every answer need not have each written. */
const noteMixed = sql<Mixed & { merchantId: string; forMs: number }>`
  insert into mixed_answers as x (base_url, mixed_until, merchant_id, order_no)
  values (${'baseUrl'}, now() + ${'forMs'} * interval '1 ms', ${'merchantId'}, ${'orderNo'})
  on conflict (base_url) do update
    set mixed_until = excluded.mixed_until, merchant_id = excluded.merchant_id, order_no = excluded.order_no
    where x.mixed_until < excluded.mixed_until - interval '1 second'`

/**
 * For the gateway clients of a merchant: notes that a gateway, or something before it, mixes answers up. For so many ms no "not
 * found" of any merchant of that gateway counts, in any process. Never rejects.
 */
export const mixedAnswers =
  (merchantId: string, db: Database, log: Logger) =>
  async (answer: Mixed, forMs: number): Promise<void> => {
    const about = { ...answer, merchantId, forMs }
    try {
      await db.run(noteMixed, about)
      log.warn(
        about,
        'an answer is about another order than the one asked about: for this time no order counts as absent',
      )
    } catch (error) {
      log.error(
        { err: error, ...about },
        'not noted that an answer is about another order than the one asked about',
      )
    }
  }
