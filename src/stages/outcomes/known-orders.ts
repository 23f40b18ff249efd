import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { KnownOrders } from '../../gateway/presence-check.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { knownOrders } from './sql/known-orders.ts'

/** How the presence check asks about payouts that exist at this account. */
export const askingAbout = (
  account: { merchantId: string; accountId: string },
  query: (mchOrderNo: string) => Promise<QueryAnswer>,
  db: Database,
): KnownOrders => ({
  known: async () => (await db.run(knownOrders, account)).map(({ orderNo }) => orderNo),
  finds: async (mchOrderNo) => (await query(mchOrderNo)).kind === 'found',
})
