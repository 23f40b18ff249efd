import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { KnownOrders } from '../../gateway/presence-check.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type OrdersBeside, ordersBeside } from './sql/known-orders.ts'

type AskedPayout = { merchantId: string; payoutId: string; accountId: string }

/**
 * Orders of an account that it confirmed, from before a payout was sent and from after it: if the gateway finds both, it would find
 * the payout's, too. While nothing was sent after it, the newest order is the best there is. Null: it never confirmed any.
 */
export async function knownBeside(db: Database, asked: AskedPayout): Promise<string[] | null> {
  const [beside] = await db.run(ordersBeside, asked)
  if (!beside) return []
  return beside.isFirst ? null : bothSides(beside)
}

/** Of the orders beside one, those to ask about: an older one, and a newer one if there is any. */
export const bothSides = ({ older, newer, newest }: OrdersBeside): string[] =>
  distinct([older, newer ?? newest])

/**
 * How a recovery makes the presence check: the ledger may lack a later attempt of the payout, so the newest order that it knows
 * stands for what was sent after it.
 */
export const askingAbout = (
  asked: AskedPayout,
  query: (mchOrderNo: string) => Promise<QueryAnswer>,
  db: Database,
): KnownOrders => ({
  known: async () => {
    const [beside] = await db.run(ordersBeside, asked)
    return beside ? distinct([beside.older, beside.newest]) : []
  },
  finds: async (mchOrderNo) => (await query(mchOrderNo)).kind === 'found',
})

const distinct = (orders: readonly (string | null)[]): string[] => [
  ...new Set(orders.filter((order) => order !== null)),
]
