import type { Logger } from '../platform/log.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'

/** As the gateway's client tells it (`MixedAnswer` of src/gateway/accounts.ts). */
type Mixed = { baseUrl: string; orderNo: string | null }

/** How many orders payoutd remembers of those that a gateway may always confuse. */
const MOST_ORDERS = 20

/** Each note stands for a second: a gateway that mixes up every answer about an order need not have each written. */
const noteMixed = sql<Mixed & { merchantId: string; mostOrders: number }>`
  insert into mixed_answers as x (base_url, mixed_until, merchant_id, order_nos)
  values (${'baseUrl'}, now() + interval '1 second', ${'merchantId'}, array_remove(array[${'orderNo'}::text], null))
  on conflict (base_url) do update
    set mixed_until = excluded.mixed_until, merchant_id = excluded.merchant_id,
      order_nos = (excluded.order_nos || array_remove(x.order_nos, ${'orderNo'}))[:${'mostOrders'}::int]
    where x.mixed_until < now() or not x.order_nos @> excluded.order_nos`

/**
 * For the gateway clients of a merchant: notes that a gateway, or something before it, mixes answers up. From then no "not found" of
 * any merchant of that gateway counts, in any process, until the grace of the one that asks has passed. Never rejects.
 */
export const mixedAnswers =
  (merchantId: string, db: Database, log: Logger) =>
  async (answer: Mixed): Promise<void> => {
    const about = { ...answer, merchantId }
    try {
      await db.run(noteMixed, { ...about, mostOrders: MOST_ORDERS })
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
