import { payoutKey } from '../../domain/identifiers.ts'
import { words } from '../../domain/mask.ts'
import type { Decided } from '../../domain/payout/resolve.ts'
import { recordAct } from '../../ledger/acts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type Fence, raiseFence } from '../../ledger/sql/fence.ts'
import { every } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { pause } from '../../platform/running/lifecycle.ts'
import { type Ending, queryEach } from '../query-each.ts'
import { askAccounts } from './accounts.ts'
import { cancelRequested } from './cancel-requested.ts'
import { type ConcludeDeps, conclude } from './conclude.ts'
import {
  type BegunRecovery,
  beginRecovery,
  fenceOf,
  graceLeft,
  isUnused,
  lockFence,
  noteRestored,
  takeFenceDown,
} from './sql/fence.ts'
import {
  deleteList,
  listOpenPayouts,
  payoutToAsk,
  progress,
  type RecoveryFinding,
  tally,
  unasked,
} from './sql/list.ts'

/** How many payouts had each finding; null: the gateway has not answered. */
export type Findings = { found: RecoveryFinding | null; count: number }[]

export type RecoveryDeps = ConcludeDeps & {
  ratePerSecond: number
  clock: Clock
  /** Ends the run; a query under way is still stored. */
  signal: AbortSignal
  onProgress: (asked: number, listed: number) => void
  /** Gets the payouts about which the latest query had no answer that counts. */
  silent?: Set<string>
}

type WaitDeps = Pick<RecoveryDeps, 'signal' | 'clock'> & {
  db: Database
  /** Called each minute while it waits, with the ms left. */
  onWait: (leftMs: number) => void
}

/** `settings`: of every account that the recovery will ask, the current one first; none: nobody can ask. */
type Fencing = { merchantId: string; feeEstimate: bigint; settings?: readonly string[] }

/**
 * Fences merchants in one transaction, and begins to recover them: once it resolves, this ledger sends nothing more of them. An
 * existing fence stays as it is, and so does the beginning of its recovery; earlier answers count as long as the recovery asks by
 * the same settings. `leftOut`: the published messages that it does not read, for the record.
 */
export function fence(
  db: Database,
  merchants: readonly Fencing[],
  { by, reason, leftOut = [] }: { by: string; reason: string; leftOut?: readonly string[] },
): Promise<BegunRecovery[]> {
  const sorted = merchants.toSorted((a, b) => (a.merchantId < b.merchantId ? -1 : 1))
  return db.transaction('fence merchants', async (tx) => {
    const fences: BegunRecovery[] = []
    for (const fencing of sorted) {
      const { merchantId, feeEstimate } = fencing
      const [before] = await tx.run(fenceOf, { merchantId })
      await tx.run(raiseFence, { merchantId, feeEstimate, by, reason })
      const raised = await tx.run(beginRecovery, recoveryOf(fencing))
      fences.push(...raised)
      const change = { subjects: leftOut, before: before ?? null, after: raised[0] ?? null }
      await recordAct(tx, { command: 'recover', by, reason, merchantId, ...change })
    }
    return fences
  })
}

/**
 * The fences of these merchants as they stand now. Call it once intake has read the commands again: as it finds that the ledger
 * lacks them, it begins a new round of every recovery.
 */
export async function beginAgain(db: Database, merchants: readonly Fencing[]): Promise<BegunRecovery[]> {
  const fences: BegunRecovery[] = []
  for (const fencing of merchants) fences.push(...(await db.run(beginRecovery, recoveryOf(fencing))))
  return fences
}

const recoveryOf = ({ merchantId, settings }: Fencing) => ({
  merchantId,
  settings: settings?.join(' ') ?? null,
})

/** The fence of a merchant; null: it has none. */
export const findFence = async (db: Database, merchantId: string): Promise<Fence | null> =>
  (await db.run(fenceOf, { merchantId }))[0] ?? null

/** Puts every open payout on the list. Call this once intake has stored everything that may have been sent. */
export async function listOpen(db: Database, { merchantId }: Fence): Promise<void> {
  await every((page) => db.write('list open payouts', listOpenPayouts, { merchantId, ...page }))
}

/** How often a waiting recovery calls `onWait`. */
const WAIT_MS = 60_000

/**
 * Waits for the grace from when the recovery began. The fence may have stood for long while a process still sent through the
 * former server; after the grace, the gateway can find what that process sent last, including sends under its last lease. Waits
 * even if nothing is listed: the last commands that the process stored may be on no list yet, so the caller lists everything
 * again afterwards. Setting the database's clock forward meanwhile shortens nothing.
 */
export async function untilGraceIsOver(
  { began }: BegunRecovery,
  graceMs: number,
  { db, clock, signal, onWait }: WaitDeps,
): Promise<void> {
  let until: number | null = null
  while (!signal.aborted) {
    const [left] = await db.run(graceLeft, { began, graceMs })
    if (!left) return
    until ??= clock.monotonic() + left.ms
    const leftMs = Math.max(left.ms, until - clock.monotonic())
    if (leftMs <= 0) return
    onWait(leftMs)
    await pause(Math.min(leftMs, WAIT_MS), signal)
  }
}

/**
 * Asks the gateway about every listed payout of a fenced merchant without an answer so far, and applies what it finds. Call this
 * after the grace. After `interrupted` or `silent`, the next call resumes.
 */
export async function queryOpen(raised: Fence, deps: RecoveryDeps): Promise<Ending> {
  const { ledger, accounts, signal, onProgress, silent } = deps
  const queryPolicies = accounts.map(({ queryPolicy }) => queryPolicy)
  const { db } = ledger
  const { merchantId } = raised
  const [counted] = await db.run(progress, { merchantId })
  const { listed, asked } = counted ?? { listed: 0, asked: 0 }
  if (signal.aborted) return 'interrupted'
  if (asked === listed) return 'all-asked'
  let answered = asked
  onProgress(answered, listed)
  return queryEach({
    ...deps,
    // One more: the first pass may come before the presence check.
    passes: Math.max(...queryPolicies.map(({ confirmations }) => confirmations)) + 1,
    betweenMs: accounts[0].queryPolicy.queryAfterMs[0] ?? 0,
    waiting: (after, limit) => db.run(unasked, { merchantId, round: raised.round, after, limit }),
    async ask(payoutId) {
      const [payout] = await db.run(payoutToAsk, { merchantId, payoutId })
      if (!payout || payout.orderNo === null)
        throw new Error(`payout ${payoutKey({ merchantId, payoutId })} was listed and is gone`)
      const said = await askAccounts(payout, payout.orderNo, deps, db)
      const result = await conclude(payout, said, payout.now, raised, deps)
      if (result === 'answered') onProgress(++answered, listed)
      if (result === 'silent') silent?.add(payoutId)
      else silent?.delete(payoutId)
      return result
    },
  })
}

/**
 * The result of a recovery. `open`: some queries remain, so the merchant stays fenced; `isUnused`: nothing shows that anything of
 * it was ever sent, so that it may have no order to be asked about. `outdated`: meanwhile payoutd found the ledger to lack
 * something more, so the answers no longer count.
 */
export type RecoveryOutcome =
  | { kind: 'recovered' | 'outdated'; findings: Findings }
  | { kind: 'open'; isUnused: boolean; findings: Findings }

/**
 * Takes the fence down if the gateway has answered about every payout on the list since payoutd last found the ledger to lack
 * something, and cancels what was to be cancelled meanwhile. `who` lets sending continue, whoever raised the fence.
 */
export function lowerAfterRecovery(
  { merchantId, round, since }: Fence,
  who: Decided,
  ledger: Ledger,
): Promise<RecoveryOutcome> {
  return ledger.db.transaction('unfence merchant', async (tx): Promise<RecoveryOutcome> => {
    await tx.run(lockFence, { merchantId })
    const [before] = await tx.run(fenceOf, { merchantId })
    const findings = await tx.run(tally, { merchantId })
    const isOther = before !== undefined && (before.round !== round || before.since !== since)
    if (isOther) return { kind: 'outdated', findings }
    if (findings.some(({ found }) => found === null))
      return { kind: 'open', isUnused: (await tx.run(isUnused, { merchantId })).length > 0, findings }
    const subjects = await cancelRequested(tx, merchantId, words(who), ledger)
    await tx.run(deleteList, { merchantId })
    await tx.run(takeFenceDown, { merchantId })
    if (before) await tx.run(noteRestored, { before: restoredText(before) })
    const change = { subjects, before: before ?? null, after: null }
    await recordAct(tx, { ...who, command: 'recover', merchantId, ...change })
    return { kind: 'recovered', findings }
  })
}

const restoredText = ({ by, reason }: Fence): string =>
  `this ledger was restored (${by}: ${reason}), so it may have lost this merchant and its payouts`
