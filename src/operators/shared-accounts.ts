import type { Paise } from '../domain/money.ts'
import { type Account, isSameAccount } from '../gateway/dialect/account.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Connection, Database } from '../platform/postgres/postgres.ts'
import { othersAt } from './sql/gateway-settings.ts'

/** A merchant with the gateway account in its settings. `former`: its former accounts, and accounts by former keys (`withAccount`). */
export type Configured = {
  merchantId: string
  account: Account
  former: readonly Account[]
  feeEstimate: Paise
}
export type Reaching = Pick<Configured, 'merchantId' | 'account'>
/** What the settings give a merchant, to compare with what others have. */
export type WithFormer = Reaching & Pick<Configured, 'former'>

/**
 * Why those of these merchants that are new to the ledger may not put their settings in force, a sentence for each account of them
 * that is or was that of another merchant, by the ledger, or also that of another one of `all`.
 */
export async function takenTexts(
  db: Connection,
  configured: readonly WithFormer[],
  all: readonly WithFormer[] = configured,
): Promise<string[]> {
  const known = await hashesInForce(db, configured)
  const newcomers = configured.filter(({ merchantId }) => !known.has(merchantId))
  return (await commonTexts(db, newcomers, all, 'is or was')).map(
    (text) =>
      `${text}. Under another merchant id payoutd does not recognize a payout, so it could pay the same one twice`,
  )
}

/** Which accounts of these merchants, former ones too, others have as well, by the ledger or by `all`: a sentence for each. */
async function commonTexts(
  db: Connection,
  configured: readonly WithFormer[],
  all: readonly WithFormer[],
  verb: 'is also' | 'is or was',
): Promise<string[]> {
  const texts = new Set<string>()
  for (const each of configured) {
    for (const one of accountsIn(each)) {
      const others = (await db.run(othersAt, { merchantId: each.merchantId, ...one })).flatMap(
        ({ merchantId, isInForce }) => (isInForce || verb === 'is or was' ? [merchantId] : []),
      )
      const twins = all.flatMap((other) => {
        const { merchantId } = other
        if (merchantId === each.merchantId || others.includes(merchantId)) return []
        return accountsIn(other).some((account) => isSameAccount(account, one)) ? [merchantId] : []
      })
      const whose = [
        ...(others.length > 0 ? [`${verb} that of merchant ${others.join(', ')}`] : []),
        ...(twins.length > 0 ? [`is in the settings also that of merchant ${twins.join(', ')}`] : []),
      ]
      if (whose.length > 0) texts.add(commonText(each, one, whose.join(' and ')))
    }
  }
  return [...texts]
}

export const accountsIn = ({ account, former }: WithFormer): Account[] => [account, ...former]

const commonText = (
  { merchantId, account }: Reaching,
  { accountId, mchId, baseUrl }: Account,
  whose: string,
): string =>
  `merchant ${merchantId}: its ${accountId === account.accountId ? '' : 'former '}gateway account, mchId ${mchId} at ${baseUrl}, ` +
  `${whose} (the same mchId at this address, or with its key or a former one)`

/** By merchant, the hash of the settings in force; it lacks those that never had any. */
export async function hashesInForce(
  db: Connection,
  configured: readonly Reaching[],
): Promise<Map<string, string>> {
  const rows = await db.run(settingsInForce, { merchantIds: configured.map(({ merchantId }) => merchantId) })
  return new Map(rows.map(({ merchantId, settingsHash }) => [merchantId, settingsHash]))
}

export const TAKEN_TODO =
  'If this is the same merchant, use only its former id (MERCHANT_ID, or id in the merchants file). If not, correct the base URL, ' +
  'mchId or key, or take the former account or key out. If this id was in use before (a ledger that was restored may have forgotten ' +
  'it), or if both shall send through this one account on purpose, run payoutd merchant adopt for it with the reason'

export function refuseTaken(texts: readonly string[]): void {
  if (texts.length > 0) throw new ExpectedFailure(`${texts.join('; ')}. Nothing was started. ${TAKEN_TODO}`)
}

export async function otherMerchantsAt(db: Connection, configured: WithFormer): Promise<string[]> {
  const { merchantId } = configured
  const others = new Set<string>()
  for (const account of accountsIn(configured))
    for (const other of await db.run(othersAt, { merchantId, ...account })) others.add(other.merchantId)
  return [...others].sort()
}

/** Which accounts of these, former ones too, others have now as well, in force or in the settings: a sentence for each. */
export const sharedTexts = (db: Database, configured: readonly WithFormer[]): Promise<string[]> =>
  commonTexts(db, configured, configured, 'is also')
