import type { Merchant } from '../../../config/merchants.ts'
import { accountOf } from '../../../gateway/dialect/account.ts'
import { accountsBeside } from '../../../operators/gateway-settings.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { accountText } from '../../../views/gateway-settings-text.ts'

/** A merchant to be recovered, with the settings that ask about it. */
export const fencing = (merchant: Merchant) => ({
  merchantId: merchant.merchantId,
  feeEstimate: merchant.feeEstimate,
  settings: accountsOf(merchant).map(({ settingsHash }) => settingsHash),
})

export const accountsOf = (merchant: Merchant) => [merchant, ...merchant.formerAccounts].map(accountOf)

/** The accounts of the merchant that its settings lack, by id, in words. */
export async function missingAccounts(merchant: Merchant, db: Database): Promise<Map<string, string>> {
  const known = accountsOf(merchant).map(({ accountId }) => accountId)
  const beside = await accountsBeside(db, merchant.merchantId, known)
  return new Map(beside.map((account) => [account.accountId, accountText(account)]))
}
