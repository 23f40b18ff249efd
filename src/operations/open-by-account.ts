import { openPayoutsOfAll } from '../ledger/open-payouts.ts'
import type { Database } from '../platform/postgres.ts'
import { type OpenAt, payinsByAccount } from './sql/gateway-settings.ts'

/** Payouts and payins that have not ended, by merchant and by the account that may have them. */
export async function openByAccount(db: Database): Promise<OpenAt[]> {
  const all = new Map<string, OpenAt>()
  const add = ({ merchantId, accountId, count }: OpenAt) => {
    const key = JSON.stringify([merchantId, accountId ?? ''])
    all.set(key, { merchantId, accountId, count: (all.get(key)?.count ?? 0) + count })
  }
  for (const [merchantId, payouts] of await openPayoutsOfAll(db))
    for (const each of payouts) add({ merchantId, ...each })
  for (const payins of await db.run(payinsByAccount, {})) add(payins)
  return [...all].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, open]) => open)
}
