import type { Account } from '../gateway/account.ts'
import { recordAct } from '../ledger/acts.ts'
import type { Paise } from '../payout/money.ts'
import type { Decided } from '../payout/resolve.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database, Transaction } from '../platform/postgres.ts'
import { openByAccount } from './open-by-account.ts'
import {
  keepSettings,
  lockInForce,
  type OpenAt,
  openMerchant,
  placeAttempted,
  putInForce,
  settingsSeen,
} from './sql/gateway-settings.ts'

/** A merchant with the gateway account of its settings. */
export type Configured = { merchantId: string; account: Account; feeEstimate: Paise }

/**
 * To be called before anything is sent or asked with these settings. The first that a merchant ever had are put in force;
 * after that only `adoptSettings` changes them, so that two installations never take turns. Throws an ExpectedFailure
 * where others are in force.
 */
export async function requireInForce(db: Database, configured: Configured): Promise<void> {
  const { merchantId, account } = configured
  const inForce = await db.transaction('require settings in force', async (tx) => {
    const inForce = await lockAccount(tx, configured)
    if (inForce === null) await change(tx, configured, null, FIRST)
    return inForce ?? account
  })
  if (inForce.settingsHash === account.settingsHash) return
  throw new ExpectedFailure(
    `merchant ${merchantId}: ${differencesText(inForce, account)}. Nothing was started. Put the former settings back; ` +
      `or, if the change is meant, run payoutd merchant adopt ${merchantId} with these settings first`,
  )
}

const FIRST = { by: 'payoutd', reason: 'the first gateway settings of this merchant', command: 'serve' }

/** `before` null: none were in force. `unchanged`: these were in force already. */
export type Adopted = { kind: 'adopted' | 'unchanged'; before: Account | null; after: Account }

/** Puts other gateway settings in force, in a person's name: processes with the former ones send nothing more. */
export function adoptSettings(db: Database, configured: Configured, decided: Decided): Promise<Adopted> {
  const { account: after } = configured
  return db.transaction('adopt settings', async (tx): Promise<Adopted> => {
    const before = await lockAccount(tx, configured)
    if (before?.settingsHash === after.settingsHash) return { kind: 'unchanged', before, after }
    await change(tx, configured, before, { ...decided, command: 'merchant adopt' })
    return { kind: 'adopted', before, after }
  })
}

/** What `adoptSettings` would do now. */
export function previewAdopt(db: Database, configured: Configured): Promise<Adopted> {
  const { account: after } = configured
  return db.transaction('preview of an adoption', async (tx): Promise<Adopted> => {
    const before = await lockAccount(tx, configured)
    return { kind: before?.settingsHash === after.settingsHash ? 'unchanged' : 'adopted', before, after }
  })
}

/** The account in force, with the merchant's row locked; null: none is. */
async function lockAccount(
  tx: Transaction,
  { merchantId, account, feeEstimate }: Configured,
): Promise<Account | null> {
  await tx.run(openMerchant, { merchantId, feeEstimate })
  const [row] = await tx.run(lockInForce, { merchantId })
  if (!row || row.settingsHash === '') return null
  const seen = await tx.run(settingsSeen, { merchantId })
  const known = seen.find(({ settingsHash }) => settingsHash === row.settingsHash)
  if (known) return known
  // A ledger of before accounts were kept holds nothing but the hash.
  return row.settingsHash === account.settingsHash ? null : { ...NOT_KEPT, settingsHash: row.settingsHash }
}

const NOT_KEPT = {
  accountId: 'not kept',
  baseUrl: 'not kept',
  mchId: 'not kept',
  keyFingerprint: 'not kept',
  dialectName: 'not kept',
}

async function change(
  tx: Transaction,
  { merchantId, account }: Configured,
  before: Account | null,
  act: Decided & { command: string },
): Promise<void> {
  const first = (await tx.run(settingsSeen, { merchantId })).length === 0
  const { accountId, settingsHash } = account
  if (first) await tx.run(placeAttempted, { merchantId, accountId: before?.accountId ?? accountId })
  await tx.run(putInForce, { merchantId, settingsHash })
  await tx.run(keepSettings, { merchantId, ...account })
  await recordAct(tx, { ...act, merchantId, subjects: [accountId], before, after: account })
}

/** In which settings two descriptions differ, for people. */
export function differencesText(inForce: Account, here: Account): string {
  const settings = [
    ['base URL', inForce.baseUrl, here.baseUrl],
    ['mchId', inForce.mchId, here.mchId],
    ['key (by its fingerprint)', inForce.keyFingerprint, here.keyFingerprint],
    ['dialect', inForce.dialectName, here.dialectName],
  ] as const
  const differences = settings.flatMap(([name, there, ours]) =>
    there === ours ? [] : [`its ${name} is ${ours} here, and ${there} is in force`],
  )
  return differences.join('; ') || 'its dialect has another content here than the one in force'
}

/** How much of a merchant is open at which account. */
export const openAccounts = async (db: Database, merchantId: string): Promise<OpenAt[]> =>
  (await openByAccount(db)).filter((open) => open.merchantId === merchantId)
