import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { KnownOrder } from '../../gateway/presence-check.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { someKnownOrder } from './sql/known-order.ts'

/** How the presence check asks about a payout that exists at this account. */
export const askingAbout = (
  account: { merchantId: string; accountId: string },
  query: (mchOrderNo: string) => Promise<QueryAnswer>,
  db: Database,
): KnownOrder => ({
  known: async () => (await db.run(someKnownOrder, account))[0]?.orderNo ?? null,
  finds: async (mchOrderNo) => (await query(mchOrderNo)).kind === 'found',
})
