import type { MixedAnswer } from '../domain/gateway-answers.ts'
import type { Logger } from '../platform/log.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'

/**
 * Each note stands for a second: a gateway that mixes up every answer need not have each written. One that is further ahead was made
 * while the database's clock was.
 */
const noteMixed = sql<MixedAnswer & { merchantId: string }>`
  insert into mixed_answers as x (base_url, mixed_until, merchant_id, order_no)
  values (${'baseUrl'}, now() + interval '1 second', ${'merchantId'}, ${'orderNo'})
  on conflict (base_url) do update
    set mixed_until = excluded.mixed_until, merchant_id = excluded.merchant_id, order_no = excluded.order_no
    where x.mixed_until < now() or x.mixed_until > excluded.mixed_until`

/**
 * For the gateway clients of a merchant: notes that a gateway, or something before it, mixes answers up. From then no "not found" of
 * any merchant of that gateway counts, in any process, until the grace of the one that asks has passed. Never rejects.
 */
export const mixedAnswers =
  (merchantId: string, db: Database, log: Logger) =>
  async (answer: MixedAnswer): Promise<void> => {
    const about = { ...answer, merchantId }
    try {
      await db.run(noteMixed, about)
      log.warn(
        about,
        'an answer is about another order than the one asked about: until the grace has passed no order counts as absent',
      )
    } catch (error) {
      log.error(
        { err: error, ...about },
        'not noted that an answer is about another order than the one asked about',
      )
    }
  }
