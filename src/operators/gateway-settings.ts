import { isDeepStrictEqual } from 'node:util'
import type { GatewayPromises } from '../domain/payout/next-query.ts'
import type { Decided } from '../domain/payout/resolve.ts'
import { withdrawnPromise } from '../domain/payout/send-again.ts'
import { formatTime } from '../domain/times.ts'
import type { Account } from '../gateway/dialect/account.ts'
import { recordAct } from '../ledger/acts.ts'
import { BY_PAYOUTD } from '../ledger/evidence/proven-losses.ts'
import { fencedMerchants } from '../ledger/ledger.ts'
import { raiseFence } from '../ledger/sql/fence.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database, Transaction } from '../platform/postgres/postgres.ts'
import type { EarlierLedger } from './recovery/earlier-ledger.ts'
import {
  accountsIn,
  type Configured,
  hashesInForce,
  otherMerchantsAt,
  type Reaching,
  refuseTaken,
  takenTexts,
  type WithFormer,
} from './shared-accounts.ts'
import {
  beginFees,
  doubtOfNewcomers,
  inForceSince,
  isBeginning,
  isKnown,
  keepSettings,
  lockInForce,
  noteOneStep,
  notePredecessor,
  onPromise,
  openMerchant,
  placeAttempted,
  putInForce,
  settingsSeen,
  takeAccountTurns,
} from './sql/gateway-settings.ts'

/**
 * Call this before `requireInForce` puts the settings of any of these in force, so that a refused start changes nothing. `all`: the
 * merchants of the settings. Throws an ExpectedFailure if one of these cannot start.
 */
export async function demandStartable(
  db: Database,
  configured: readonly WithFormer[],
  { all = configured, command = FIRST.command }: { all?: readonly WithFormer[]; command?: string } = {},
): Promise<void> {
  refuseTaken(await takenTexts(db, configured, all))
  const hashes = await hashesInForce(db, configured)
  for (const each of configured) {
    const { settingsHash } = each.account
    if ((hashes.get(each.merchantId) ?? settingsHash) === settingsHash) continue
    const inForce = await otherAccount(db, each)
    if (inForce !== null) throw await refusal(db, each, inForce, command)
  }
}

/**
 * Call this before sending or asking anything with these settings. It puts the first settings of a merchant in force; after that
 * only `adoptSettings` changes them, so that two installations never alternate. Returns why it fenced a merchant who is new to
 * the ledger (see fenceNewcomer), else null. `act`: who puts the first settings in force; a start acts in nobody's name. Throws
 * an ExpectedFailure if other settings are in force, or if none are and an account of these is another merchant's.
 */
export async function requireInForce(
  db: Database,
  configured: Configured,
  earlier: EarlierLedger,
  act: Decided & { command: string } = FIRST,
): Promise<string | null> {
  const { merchantId, account } = configured
  // A lock on the row here would let a session that holds one merchant's row block the start for all others.
  const [known] = await db.run(settingsInForce, { merchantIds: [merchantId] })
  const seen = await db.run(settingsSeen, { merchantId })
  const isOurs = ({ settingsHash }: { settingsHash: string }) => settingsHash === account.settingsHash
  if (known && isOurs(known) && seen.some(isOurs)) {
    await db.run(beginFees, configured)
    return null
  }
  const before = await earlierThan(db, configured, earlier)
  const { inForce, fenced } = await db.transaction('require settings in force', async (tx) => {
    const inForce = await lockAccount(tx, configured)
    if (inForce !== null) return { inForce, fenced: null }
    refuseTaken(await takenTexts(tx, [configured]))
    const fenced = await fenceNewcomer(tx, configured, before)
    await change(tx, configured, null, act)
    return { inForce: account, fenced }
  })
  if (inForce.settingsHash === account.settingsHash) return fenced
  throw await refusal(db, configured, inForce, act.command)
}

async function refusal(
  db: Database,
  configured: Reaching,
  inForce: Account,
  command: string,
): Promise<ExpectedFailure> {
  const { merchantId } = configured
  const isSetBack = command === 'recover' || (await fencedMerchants(db)).has(merchantId)
  const adopt = `run payoutd merchant adopt ${merchantId} with these settings`
  return new ExpectedFailure(
    `${await otherText(db, configured, inForce)}. Nothing was started. ` +
      (isSetBack
        ? `The ledger may have lost the record that these settings were adopted. If they were in use last, ${adopt}: a recovery with those in force could send payouts again that these settings sent to another account`
        : `Start with the settings in force. If you mean the change, ${adopt} first`),
  )
}

/** How the settings in force of a merchant differ from these, in words; null: they do not, or none are in force. */
export async function otherInForce(db: Database, configured: Reaching): Promise<string | null> {
  const inForce = await otherAccount(db, configured)
  return inForce && otherText(db, configured, inForce)
}

/** The account in force of a merchant if it is reached by other settings than these. */
async function otherAccount(db: Database, { merchantId, account }: Reaching): Promise<Account | null> {
  const [row] = await db.run(settingsInForce, { merchantIds: [merchantId] })
  if (!row || row.settingsHash === account.settingsHash) return null
  const seen = await db.run(settingsSeen, { merchantId })
  return seen.find(({ settingsHash }) => settingsHash === row.settingsHash) ?? { ...NOT_KEPT, ...row }
}

async function otherText(db: Database, { merchantId, account }: Reaching, inForce: Account): Promise<string> {
  const text = `merchant ${merchantId}: ${differencesText(inForce, account)}`
  const seen = await db.run(settingsSeen, { merchantId })
  if (!seen.some(({ settingsHash }) => settingsHash === account.settingsHash)) return text
  const [replaced] = await db.run(inForceSince, { merchantId, settingsHash: inForce.settingsHash })
  const at = replaced ? ` at ${formatTime(replaced.since)}` : ''
  return `${text}; the settings here are former ones that were replaced${at}`
}

/** Call this before deciding anything by these settings. It puts none in force. Throws an ExpectedFailure if others are. */
export async function demandInForce(db: Database, configured: Reaching): Promise<void> {
  const other = await otherInForce(db, configured)
  if (other === null) return
  throw new ExpectedFailure(
    `${other}. Nothing was done: use the settings in force, or run payoutd merchant adopt first`,
  )
}

const FIRST = { by: 'payoutd', reason: 'the first gateway settings of this merchant', command: 'serve' }

/**
 * `before` null: none were in force. `others`: the other merchants whose account this, or a former one of these settings, is or was.
 * `unchanged`: these were in force already. `moved`: the operator was shown other settings in force, or other merchants.
 */
export type Adopted = {
  kind: 'adopted' | 'unchanged' | 'moved'
  before: Account | null
  after: Account
  others: string[]
}

/**
 * Puts other gateway settings in force, in a person's name: processes that use the former ones send nothing more. `shown`: what
 * payoutd showed the operator when it asked to confirm, if it did.
 */
export async function adoptSettings(
  db: Database,
  configured: Configured,
  decided: Decided,
  earlier: EarlierLedger,
  shown?: Pick<Adopted, 'before' | 'others'>,
): Promise<Adopted> {
  const { account: after } = configured
  const sooner = await earlierThan(db, configured, earlier)
  return db.transaction('adopt settings', async (tx): Promise<Adopted> => {
    const before = await lockAccount(tx, configured)
    const others = await otherMerchantsAt(tx, configured)
    if (before?.settingsHash === after.settingsHash) return { kind: 'unchanged', before, after, others }
    const isMoved = shown && !isDeepStrictEqual(seenOf({ before, others }), seenOf(shown))
    if (isMoved) return { kind: 'moved', before, after, others }
    if (before === null) await fenceNewcomer(tx, configured, sooner)
    await change(tx, configured, before, { ...decided, command: 'merchant adopt' })
    return { kind: 'adopted', before, after, others }
  })
}

const seenOf = ({ before, others }: Pick<Adopted, 'before' | 'others'>) => [before?.settingsHash, others]

/** What `adoptSettings` would do now. */
export function previewAdopt(db: Database, configured: Configured): Promise<Adopted> {
  const { account: after } = configured
  return db.transaction('preview of an adoption', async (tx): Promise<Adopted> => {
    const before = await lockAccount(tx, configured)
    const others = await otherMerchantsAt(tx, configured)
    const kind = before?.settingsHash === after.settingsHash ? 'unchanged' : 'adopted'
    return { kind, before, after, others }
  })
}

/** Asks Kafka before the transaction, and only for a merchant who is new to a ledger without payouts. */
async function earlierThan(
  db: Database,
  { merchantId }: Configured,
  earlier: EarlierLedger,
): Promise<string | null> {
  const [row] = await db.run(isBeginning, { merchantId })
  return row ? earlier() : null
}

/**
 * A merchant who is new to this ledger may still have payouts at the gateway. So this fences it if another ledger published
 * before this one began, or if another merchant is fenced. Returns why, or null.
 */
async function fenceNewcomer(
  tx: Transaction,
  { merchantId, feeEstimate }: Configured,
  before: string | null,
): Promise<string | null> {
  const [known] = await tx.run(isKnown, { merchantId })
  if (known) return null
  if (before !== null) await tx.run(notePredecessor, { before })
  const [doubt] = await tx.run(doubtOfNewcomers, { merchantId })
  if (!doubt) return null
  const { reason, oneStep } = doubt
  await tx.run(raiseFence, { merchantId, by: BY_PAYOUTD, reason, feeEstimate })
  if (oneStep) await tx.run(noteOneStep, { merchantId, reason })
  return reason
}

/** Locks the accounts of these settings and then the merchant's row. Returns the account in force; null: none is. */
async function lockAccount(tx: Transaction, configured: Configured): Promise<Account | null> {
  const { merchantId, account, feeEstimate } = configured
  await tx.run(takeAccountTurns, { mchIds: accountsIn(configured).map(({ mchId }) => mchId) })
  await tx.run(openMerchant, { merchantId, feeEstimate })
  const [row] = await tx.run(lockInForce, { merchantId })
  if (!row || row.settingsHash === '') return null
  const seen = await tx.run(settingsSeen, { merchantId })
  const known = seen.find(({ settingsHash }) => settingsHash === row.settingsHash)
  if (known) return known
  // A ledger from before payoutd kept accounts has only the hash.
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
  { merchantId, account, feeEstimate }: Configured,
  before: Account | null,
  act: Decided & { command: string },
): Promise<void> {
  const first = (await tx.run(settingsSeen, { merchantId })).length === 0
  const { accountId, settingsHash } = account
  if (first) await tx.run(placeAttempted, { merchantId, accountId: before?.accountId ?? accountId })
  await tx.run(putInForce, { merchantId, settingsHash })
  await tx.run(beginFees, { merchantId, feeEstimate })
  await tx.run(keepSettings, { merchantId, ...account })
  await recordAct(tx, { ...act, merchantId, subjects: [accountId], before, after: account })
}

/** Names the settings in which two descriptions differ, for people. */
export function differencesText(inForce: Account, here: Account): string {
  const settings = [
    ['base URL', inForce.baseUrl, here.baseUrl],
    ['mchId', inForce.mchId, here.mchId],
    ['key (by its fingerprint)', inForce.keyFingerprint, here.keyFingerprint],
    ['dialect', inForce.dialectName, here.dialectName],
  ] as const
  const differences = settings.flatMap(([name, there, ours]) =>
    there === ours ? [] : [`its ${name} here is ${ours}, but ${there} is in force`],
  )
  return differences.join('; ') || 'its dialect here has other content than the dialect in force'
}

/** Each account of the merchant that was ever in force, once and in its latest form, except `known`. */
export async function accountsBeside(
  db: Database,
  merchantId: string,
  known: readonly string[],
): Promise<Account[]> {
  const seen = await db.run(settingsSeen, { merchantId })
  const accounts = new Map(seen.map((each) => [each.accountId, each]))
  return [...accounts.values()].filter(({ accountId }) => !known.includes(accountId))
}

/** How many payouts rely on a promise of the gateway that is not among these: each goes to review when its turn comes. */
export async function countWithdrawn(
  db: Database,
  merchantId: string,
  promises: GatewayPromises,
): Promise<number> {
  const waiting = await db.run(onPromise, { merchantId })
  return waiting.reduce(
    (sum, { count, ...payout }) => sum + (withdrawnPromise(payout, promises) === null ? 0 : count),
    0,
  )
}
