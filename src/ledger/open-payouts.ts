import { paise } from '../domain/money.ts'
import { pages } from '../platform/postgres/pages.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { merchantsWithOpen, type OpenPayouts, openPage } from './sql/open-payouts.ts'

export type { OpenPayouts }

/** The open payouts of a merchant, review included, by account and state; amounts in paise. Reads them in pages. */
export async function openPayouts(db: Database, merchantId: string): Promise<OpenPayouts[]> {
  const all = new Map<string, OpenPayouts>()
  for await (const page of pages((page) => db.run(openPage, { merchantId, ...page }))) {
    for (const { accountId, state, count, amount, attempted } of page) {
      const key = JSON.stringify([accountId, state])
      const before = all.get(key) ?? { count: 0, amount: 0n, attempted: 0n }
      all.set(key, {
        accountId,
        state,
        count: before.count + count,
        amount: paise(before.amount + amount),
        attempted: paise(before.attempted + attempted),
      })
    }
  }
  return [...all.values()]
}

/** The same for every merchant that has any. */
export async function openPayoutsOfAll(db: Database): Promise<Map<string, OpenPayouts[]>> {
  const all = new Map<string, OpenPayouts[]>()
  for (const { merchantId } of await db.run(merchantsWithOpen, {}))
    all.set(merchantId, await openPayouts(db, merchantId))
  return all
}
