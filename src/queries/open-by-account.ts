import { openPayouts, openPayoutsOfAll } from '../ledger/open-payouts.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type OpenAt, payinsByAccount } from './sql/accounts.ts'

/** Payouts and payins that have not ended, by merchant and by the account that may have them; for one merchant, or for all. */
export async function openByAccount(db: Database, merchantId: string | null = null): Promise<OpenAt[]> {
  const all = new Map<string, OpenAt>()
  const add = ({ merchantId, accountId, count }: OpenAt) => {
    const key = JSON.stringify([merchantId, accountId ?? ''])
    all.set(key, { merchantId, accountId, count: (all.get(key)?.count ?? 0) + count })
  }
  const payouts =
    merchantId === null
      ? await openPayoutsOfAll(db)
      : new Map([[merchantId, await openPayouts(db, merchantId)]])
  for (const [merchantId, open] of payouts) for (const each of open) add({ merchantId, ...each })
  for (const payins of await db.run(payinsByAccount, { merchantId })) add(payins)
  return [...all].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, open]) => open)
}
