import { recordAct } from '../ledger/acts.ts'
import { type Ledger, lockPayouts, storeDecisions } from '../ledger/ledger.ts'
import { tellLostResult } from '../ledger/published.ts'
import { type Fence, raiseFence } from '../ledger/sql/fence.ts'
import { recordAttempts } from '../ledger/sql/published.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import { stop } from '../payout/cancel.ts'
import type { Exchange, OrderReport } from '../payout/evidence.ts'
import type { Instant } from '../payout/instant.ts'
import type { Judgement } from '../payout/judgement.ts'
import { type Scrubbed, words } from '../payout/mask.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { recover, recoverAbsent } from '../payout/recover.ts'
import { awaitsRefusal } from '../payout/refused.ts'
import type { Decided } from '../payout/resolve.ts'
import { isEnd } from '../payout/states.ts'
import { become, change, type Timetable } from '../payout/transition.ts'
import type { Clock } from '../platform/clock.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import { pause } from '../platform/lifecycle.ts'
import { every } from '../platform/pages.ts'
import type { Database, Transaction } from '../platform/postgres.ts'
import { askEach, type Ending, type Heard } from '../reconcile/ask-each.ts'
import { faultsOfRejected } from './faults.ts'
import {
  type Begun,
  beginRecovery,
  fenceOf,
  graceLeft,
  lockFence,
  noteRestored,
  takeFenceDown,
} from './sql/fence.ts'
import {
  type Found,
  faultsOf,
  forgetList,
  keepAbsence,
  keepFound,
  listOpenPayouts,
  lockCancelRequested,
  orderAt,
  payoutById,
  progress,
  tally,
  unasked,
  wasAtGateway,
} from './sql/list.ts'
import { noteLoss } from './sql/server.ts'

/** Of how many payouts the asking came to what; null: the gateway has not told. */
export type Findings = { found: Found | null; count: number }[]

/** One gateway account of the merchant, as it is asked. */
export type AskedAccount = {
  accountId: string
  settingsHash: string
  table: Timetable
  /** Asks the gateway about an order. Never rejects. */
  query: (mchOrderNo: string) => Promise<QueryAnswer>
  /** The positive control of this account: `found` is told of every order that was found. */
  control: { found: (mchOrderNo: string) => void; holds: () => Promise<boolean> }
}

export type RecoveryDeps = {
  ledger: Ledger
  judge: Pick<Judgement, 'settle'>
  /** The account in the settings, and former ones behind it. */
  accounts: readonly [AskedAccount, ...AskedAccount[]]
  /** Accounts of the merchant, in words, that the settings lack: nobody can ask there. */
  missing: readonly string[]
  ratePerSecond: number
  /** Who asks, and why. */
  who: Decided
  clock: Clock
  /** Ends the asking; what was under way is still stored. */
  signal: AbortSignal
  onProgress: (asked: number, listed: number) => void
}

type WaitDeps = Pick<RecoveryDeps, 'signal'> & {
  db: Database
  /** Each minute while it waits: for how many ms more. */
  onWait: (leftMs: number) => void
}

/** `settings`: of every account by which it is going to be asked, the current one first; none: nobody can ask. */
type Fencing = { merchantId: string; feeEstimate: bigint; settings?: readonly string[] }

/**
 * Fences merchants, all of them in one transaction, and begins to recover them: once it resolves, nothing more of them is
 * sent from this ledger. A fence that stands stays as it is, and so does when its recovery began; what that was answered
 * counts while it is asked by the same settings.
 */
export function fence(
  db: Database,
  merchants: readonly Fencing[],
  { by, reason }: { by: string; reason: string },
): Promise<Begun[]> {
  const sorted = merchants.toSorted((a, b) => (a.merchantId < b.merchantId ? -1 : 1))
  return db.transaction('fence merchants', async (tx) => {
    const fences: Begun[] = []
    for (const { merchantId, feeEstimate, settings } of sorted) {
      const [before] = await tx.run(fenceOf, { merchantId })
      await tx.run(raiseFence, { merchantId, feeEstimate, by, reason })
      const raised = await tx.run(beginRecovery, { merchantId, settings: settings?.join(' ') ?? null })
      fences.push(...raised)
      const change = { subjects: [], before: before ?? null, after: raised[0] ?? null }
      await recordAct(tx, { command: 'recover', by, reason, merchantId, ...change })
    }
    return fences
  })
}

/** The fence of a merchant; null: it has none. */
export const findFence = async (db: Database, merchantId: string): Promise<Fence | null> =>
  (await db.run(fenceOf, { merchantId }))[0] ?? null

/** Puts every open payout on the list: to be called once the ledger has taken in everything that may have been sent. */
export async function listOpen(db: Database, { merchantId }: Fence): Promise<void> {
  await every((page) => db.write('list open payouts', listOpenPayouts, { merchantId, ...page }))
}

/** How often it is said that a recovery waits. */
const WAIT_MS = 60_000

/**
 * Waits from when the recovery began: the fence may have stood for long while a process still sent by the former server, and
 * what left right before that was stopped, or by a lease of then, is there to be found after the grace. Also where nothing is
 * listed: what that process took in last may be on no list yet, so all is to be listed again after it.
 */
export async function untilGraceIsOver(
  { began }: Begun,
  graceMs: number,
  { db, signal, onWait }: WaitDeps,
): Promise<void> {
  while (!signal.aborted) {
    const [left] = await db.run(graceLeft, { began, graceMs })
    if (!left || left.ms <= 0) return
    onWait(left.ms)
    await pause(Math.min(left.ms, WAIT_MS), signal)
  }
}

/**
 * Asks the gateway about every listed payout of a fenced merchant that it has not told of yet, and settles what it finds. To
 * be called after the grace. `interrupted` and `silent` runs go on when it is called again.
 */
export async function askAboutOpen(raised: Fence, deps: RecoveryDeps): Promise<Ending> {
  const { ledger, accounts, signal, onProgress } = deps
  const tables = accounts.map(({ table }) => table)
  const { db } = ledger
  const { merchantId } = raised
  const [counted] = await db.run(progress, { merchantId })
  const { listed, asked } = counted ?? { listed: 0, asked: 0 }
  if (signal.aborted) return 'interrupted'
  if (asked === listed) return 'all-asked'
  let told = asked
  onProgress(told, listed)
  return askEach({
    ...deps,
    // One more: the first may come before the positive control.
    passes: Math.max(...tables.map(({ confirmations }) => confirmations)) + 1,
    betweenMs: accounts[0].table.queryAfterMs[0] ?? 0,
    waiting: (after, limit) => db.run(unasked, { merchantId, after, limit }),
    async ask(payoutId) {
      const heard = await askOne(raised, payoutId, deps)
      if (heard === 'told') onProgress(++told, listed)
      return heard
    },
  })
}

/** An order that one of the accounts has. */
type FoundAt = { account: AskedAccount; report: OrderReport }

/**
 * Whichever account the ledger knows of, also one that the settings lack, an attempt that it lost may have gone to any: each is
 * asked, that one first, until one has an order that did not fail.
 */
async function askOne(raised: Fence, payoutId: string, deps: RecoveryDeps): Promise<Heard> {
  const { merchantId } = raised
  const [payout] = await deps.ledger.db.run(payoutById, { merchantId, payoutId })
  if (!payout || payout.orderNo === null)
    throw new Error(`payout ${merchantId}:${payoutId} was listed and is gone`)
  const { orderNo, accountId } = payout
  const { accounts } = deps
  const isKnown = (account: AskedAccount) => account.accountId === accountId
  const isAway = isAtAway(payout, deps)
  const isAnywhere = isAway || accounts.length + deps.missing.length > 1
  const settleAs = ({ account, report }: FoundAt): Promise<void> => {
    const table = isAnywhere ? strictest(accounts) : account.table
    return settleFound(payout, report, { ...account, table }, raised, deps)
  }
  let failed: FoundAt | null = null
  let absent: Exchange | null = null
  for (const account of accounts.toSorted((one, other) => Number(isKnown(other)) - Number(isKnown(one)))) {
    const answer = await account.query(orderNo)
    if (answer.kind === 'unknown') return 'silent'
    if (answer.kind === 'found') {
      account.control.found(orderNo)
      const found = { account, report: answer.report }
      if (answer.report.status !== 'failed') {
        await settleAs(found)
        return 'told'
      }
      failed ??= found
      continue
    }
    // At an account that the ledger does not know to have been used for it, no order may be known to exist.
    const isUnused = accountId !== null && !isKnown(account) && !(await knowsOrderAt(account, payout, deps))
    const isBelieved = isUnused || (await account.control.holds())
    if (!isBelieved) return 'not-yet'
    absent = answer.exchange
  }
  if (failed) {
    await (isAway ? leaveUnasked(payout, raised, deps) : settleAs(failed))
    return 'told'
  }
  if (!absent) return 'silent'
  const at = isAnywhere ? { accountId: null, table: strictest(accounts) } : accounts[0]
  return recordAbsence(payout, absent, at, raised, deps)
}

const knowsOrderAt = async ({ accountId }: AskedAccount, { merchantId }: Payout, { ledger }: RecoveryDeps) =>
  (await ledger.db.run(orderAt, { merchantId, accountId })).length > 0

/** Of a payout that may be at any of several accounts: no account promises anything for another. */
function strictest(accounts: readonly AskedAccount[]): Timetable {
  const tables = accounts.map(({ table }) => table)
  return {
    queryAfterMs: tables[0]?.queryAfterMs ?? [],
    graceMs: Math.max(...tables.map(({ graceMs }) => graceMs)),
    confirmations: Math.max(...tables.map(({ confirmations }) => confirmations)),
    resendWhenAbsent: false,
  }
}

/** Adopted meanwhile, others would judge otherwise. */
async function demandSettings(
  tx: Transaction,
  { merchantId }: Fence,
  { accounts }: RecoveryDeps,
): Promise<void> {
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
  if (inForce && inForce.settingsHash !== accounts[0].settingsHash)
    throw new ExpectedFailure(
      `other gateway settings of ${merchantId} were put in force meanwhile: start payoutd recover again with those`,
    )
}

function recordAbsence(
  key: Payout,
  exchange: Exchange,
  { accountId, table }: { accountId: string | null; table: Timetable },
  raised: Fence,
  deps: RecoveryDeps,
): Promise<Heard> {
  const { ledger, missing } = deps
  const { round } = raised
  return ledger.db.transaction('record recovered absence', async (tx) => {
    await demandSettings(tx, raised, deps)
    const [payout] = await lockPayouts(tx, [key])
    if (!payout) throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`)
    const { merchantId, payoutId } = payout
    const isElsewhere = (isAtAway(payout, deps) || missing.length > 0) && !isEnd(payout.state)
    const [kept] = await tx.run(keepAbsence, {
      merchantId,
      payoutId,
      round,
      confirmations: table.confirmations,
      found: isElsewhere ? 'review' : foundOf(payout),
    })
    if (!kept?.believed) return 'not-yet'
    await tellResult(tx, payout, ledger)
    const mayBeAlive = kept.sent || (accountId === null && payout.accountId === null && payout.doubted)
    // Whoever decides about it wants to know that the gateway has no such order.
    if (payout.state === 'review' || (mayBeAlive && !isElsewhere)) {
      // Whoever does not find an order that there was may have asked at another account than has it.
      const isMisplaced = (await tx.run(wasAtGateway, { merchantId, payoutId })).length > 0
      const at = !mayBeAlive ? payout.accountId : isMisplaced ? null : accountId
      const promised = isMisplaced ? { ...table, resendWhenAbsent: false } : table
      await storeDecisions(tx, ledger, [recoverAbsent(payout, at, exchange, promised)])
    } else if (!isElsewhere && awaitsRefusal(payout))
      await storeDecisions(tx, ledger, await refusals(tx, [payout], exchange))
    if (isElsewhere) await storeDecisions(tx, ledger, [leftUnasked(payout, deps)])
    return 'told'
  })
}

/** The ledger knows it to be at an account that the settings lack. */
const isAtAway = ({ accountId }: Payout, { accounts }: RecoveryDeps): boolean =>
  accountId !== null && !accounts.some((account) => account.accountId === accountId)

/** A payout that nobody can ask about, as the settings lack the account that may have it: it is not sent to another. */
function leaveUnasked(key: Payout, fence: Fence, deps: RecoveryDeps): Promise<void> {
  return settle(key, fence, deps, (payout) => {
    const decision = leftUnasked(payout, deps)
    return {
      decisions: [decision],
      after: 'change' in decision ? decision.change.after : payout,
      sent: false,
    }
  })
}

/** One that the ledger knows to be at an account which the settings have may be at one that they lack by an attempt that it lost. */
function leftUnasked(payout: Payout, deps: RecoveryDeps): Decision {
  const { state, accountId } = payout
  if (isEnd(state) || (state === 'review' && accountId !== null)) return { nothing: true }
  const isAway = isAtAway(payout, deps)
  const lacking = isAway ? `account ${accountId}` : deps.missing.join(', ')
  const note = `the settings lack ${lacking}, where the payout may be: add it to formerAccounts`
  // It may be alive at that one, and no other promises anything for it.
  const doubted = isAway ? payout : { ...payout, accountId: null, doubted: true, absenceConfirmed: false }
  const after = state === 'review' ? doubted : become(doubted, 'review', { reason: 'account-unknown' })
  return { change: { before: payout, after, source: 'OPERATOR', exchange: { note } } }
}

function foundOf(payout: Payout): Found {
  const { state, attempt } = payout
  if (isEnd(state)) return state
  if (attempt === 0 && awaitsRefusal(payout)) return 'rejected'
  return attempt === 0 ? 'never-sent' : 'not-found'
}

async function tellResult(tx: Transaction, payout: Payout, ledger: Ledger): Promise<void> {
  if (isEnd(payout.state)) await tellLostResult(tx, payout, await faultsOfRejected(tx, payout), ledger)
}

function settleFound(
  key: Payout,
  report: OrderReport,
  { accountId, table }: Pick<AskedAccount, 'accountId' | 'table'>,
  fence: Fence,
  deps: RecoveryDeps,
): Promise<void> {
  const { judge, who } = deps
  const note = `${words(who)} (the ledger was restored, and the gateway has this order)`
  return settle(key, fence, deps, (payout, now) =>
    recover(payout, { report, accountId }, note, judge, table, now),
  )
}

/** Stores what is decided about one payout of the list, that it was, and its lost result. `sent`: the ledger lost its attempt. */
function settle(
  key: Payout,
  fence: Fence,
  deps: RecoveryDeps,
  decide: (payout: Payout, now: Instant) => { decisions: readonly Decision[]; after: Payout; sent: boolean },
): Promise<void> {
  const { ledger } = deps
  const { round } = fence
  return ledger.db.transaction('settle recovered', async (tx) => {
    await demandSettings(tx, fence, deps)
    const [payout] = await lockPayouts(tx, [key])
    if (!payout) throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`)
    const { decisions, after, sent } = decide(payout, tx.now)
    await storeDecisions(tx, ledger, decisions)
    const { merchantId, payoutId, orderNo } = payout
    if (sent) {
      const lost = { merchantIds: [merchantId], payoutIds: [payoutId], orderNos: [orderNo] }
      await tx.run(recordAttempts, { ...lost, firsts: [1], lasts: [1] })
      await tx.run(noteLoss, {})
    }
    await tx.run(keepFound, { merchantId, payoutId, round, found: after.state })
    await tellResult(tx, after, ledger)
  })
}

/** What a recovery came to. `open`: something is still to be asked about, so the merchant stays fenced. */
export type Outcome = { kind: 'recovered' | 'open'; findings: Findings }

/**
 * Takes the fence down if every payout on the list was told of, since the ledger was last found to lack something, and cancels
 * what was to be cancelled meanwhile. `who` lets sending go on, whoever raised the fence.
 */
export function takeDown(
  { merchantId, round, since }: Fence,
  who: Decided,
  ledger: Ledger,
): Promise<Outcome> {
  return ledger.db.transaction('unfence merchant', async (tx) => {
    await tx.run(lockFence, { merchantId })
    const [before] = await tx.run(fenceOf, { merchantId })
    const findings = await tx.run(tally, { merchantId })
    const isOther = before !== undefined && (before.round !== round || before.since !== since)
    if (isOther || findings.some(({ found }) => found === null)) return { kind: 'open', findings }
    const subjects = await cancelRequested(tx, merchantId, words(who), ledger)
    await tx.run(forgetList, { merchantId })
    await tx.run(takeFenceDown, { merchantId })
    if (before) await tx.run(noteRestored, { before: restoredText(before) })
    const change = { subjects, before: before ?? null, after: null }
    await recordAct(tx, { ...who, command: 'recover', merchantId, ...change })
    return { kind: 'recovered', findings }
  })
}

const restoredText = ({ by, reason }: Fence): string =>
  `this ledger was restored (${by}: ${reason}), and may have lost that it ever had this merchant`

/**
 * What becomes of payouts whose commands break rules, once it is known that the gateway has none of them: they are rejected,
 * and one that was sent once all the same is a person's to decide about.
 */
async function refusals(
  tx: Transaction,
  payouts: readonly Payout[],
  exchange: Exchange,
): Promise<Decision[]> {
  const [first] = payouts
  if (!first) return []
  const payoutIds = payouts.map(({ payoutId }) => payoutId)
  const faults = await tx.run(faultsOf, { merchantId: first.merchantId, payoutIds })
  const byId = new Map(faults.map((each) => [each.payoutId, each.faults]))
  return payouts.map((before) => {
    const after = stop(before)
    return {
      change: { before, after, source: 'VALIDATION', faults: byId.get(before.payoutId) ?? [], exchange },
    }
  })
}

/** Cancels or refuses what was to be while the merchant was fenced, or leaves it to a person. Returns the payoutIds. */
export async function cancelRequested(
  tx: Transaction,
  merchantId: string,
  who: Scrubbed,
  ledger: Ledger,
): Promise<string[]> {
  const asked = await tx.run(lockCancelRequested, { merchantId })
  const [refused, cancelled] = [asked.filter(awaitsRefusal), asked.filter((each) => !awaitsRefusal(each))]
  const stopped = cancelled.map((payout) =>
    change(payout, stop(payout), 'OPERATOR', { note: `${payout.cancelRequest} (once recovered; ${who})` }),
  )
  const note = `held while its merchant was fenced (recovered by ${who})`
  await storeDecisions(tx, ledger, [...stopped, ...(await refusals(tx, refused, { note }))])
  return asked.map(({ payoutId }) => payoutId)
}
