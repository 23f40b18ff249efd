import { recordAct } from '../ledger/acts.ts'
import { type Ledger, lockPayouts, storeDecisions, storeOutbox } from '../ledger/ledger.ts'
import { messagesAbout } from '../ledger/messages.ts'
import { type Fence, raiseFence } from '../ledger/sql/fence.ts'
import type { QueryAnswer } from '../payout/answers.ts'
import { CANCEL_REQUESTED } from '../payout/cancel.ts'
import type { EvidenceSource, Exchange, OrderReport } from '../payout/evidence.ts'
import type { Judgement } from '../payout/judgement.ts'
import type { Payout } from '../payout/payout.ts'
import { recover, recoverAbsent } from '../payout/recover.ts'
import { isEnd } from '../payout/states.ts'
import { become, change, type Timetable } from '../payout/transition.ts'
import type { Clock } from '../platform/clock.ts'
import { pause } from '../platform/lifecycle.ts'
import { every } from '../platform/pages.ts'
import type { Database, Transaction } from '../platform/postgres.ts'
import { askEach, type Ending, type Heard } from '../reconcile/ask-each.ts'
import { fenceOf, graceLeft, lockFence, takeFenceDown } from './sql/fence.ts'
import {
  type Found,
  forgetList,
  keepAbsence,
  keepFound,
  listOpenPayouts,
  lockCancelRequested,
  payoutById,
  progress,
  tally,
  unasked,
} from './sql/list.ts'
import { recordAttempts } from './sql/lost.ts'

/** Of how many payouts the asking came to what; null: the gateway has not told. */
export type Findings = { found: Found | null; count: number }[]

/** One gateway account of the merchant, as it is asked. */
export type AskedAccount = {
  accountId: string
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
  ratePerSecond: number
  clock: Clock
  /** Ends the asking; what was under way is still stored. */
  signal: AbortSignal
  onProgress: (asked: number, listed: number) => void
}

type Fencing = { merchantId: string; feeEstimate: bigint }

/**
 * Fences merchants, all of them in one transaction: once it resolves, nothing more of them is sent. A fence that stands
 * stays as it is.
 */
export function fence(
  db: Database,
  merchants: readonly Fencing[],
  { by, reason }: { by: string; reason: string },
): Promise<Fence[]> {
  const sorted = merchants.toSorted((a, b) => (a.merchantId < b.merchantId ? -1 : 1))
  return db.transaction('fence merchants', async (tx) => {
    const fences: Fence[] = []
    for (const each of sorted) {
      const { merchantId } = each
      const [before] = await tx.run(fenceOf, { merchantId })
      const raised = await tx.run(raiseFence, { ...each, by, reason })
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

/**
 * Asks the gateway about every listed payout of a fenced merchant that it has not told of yet, and settles what it finds.
 * Waits for the grace first: an order that left right before the fence may not be there to be found. `interrupted` and `silent` runs go on when it is called again.
 */
export async function askAboutOpen(raised: Fence, deps: RecoveryDeps): Promise<Ending> {
  const { ledger, accounts, signal, onProgress } = deps
  const tables = accounts.map(({ table }) => table)
  const { db } = ledger
  const { merchantId, since } = raised
  const [counted] = await db.run(progress, { merchantId })
  const { listed, asked } = counted ?? { listed: 0, asked: 0 }
  if (asked === listed) return 'all-asked'
  const [left] = await db.run(graceLeft, {
    since,
    graceMs: Math.max(...tables.map(({ graceMs }) => graceMs)),
  })
  await pause(left?.ms ?? 0, signal)
  if (signal.aborted) return 'interrupted'
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

async function askOne(raised: Fence, payoutId: string, deps: RecoveryDeps): Promise<Heard> {
  const { merchantId } = raised
  const [payout] = await deps.ledger.db.run(payoutById, { merchantId, payoutId })
  if (!payout || payout.orderNo === null)
    throw new Error(`payout ${merchantId}:${payoutId} was listed and is gone`)
  const { orderNo, accountId } = payout
  const [current] = deps.accounts
  // Where the ledger knows of no attempt, the one that it lost may have gone to any account.
  const accounts =
    accountId === null ? deps.accounts : deps.accounts.filter((each) => each.accountId === accountId)
  let absent: Exchange | null = null
  for (const account of accounts) {
    const answer = await account.query(orderNo)
    if (answer.kind === 'unknown') return 'silent'
    if (answer.kind === 'found') {
      account.control.found(orderNo)
      await settleFound(raised, payout, answer.report, account, deps)
      return 'told'
    }
    if (!(await account.control.holds())) return 'not-yet'
    absent = answer.exchange
  }
  return absent ? recordAbsence(payout, absent, accounts[0] ?? current, deps) : 'silent'
}

function recordAbsence(
  key: Payout,
  exchange: Exchange,
  { accountId, table }: AskedAccount,
  { ledger }: RecoveryDeps,
): Promise<Heard> {
  return ledger.db.transaction('record recovered absence', async (tx) => {
    const [payout] = await lockPayouts(tx, [key])
    if (!payout) throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`)
    const { merchantId, payoutId } = payout
    const [kept] = await tx.run(keepAbsence, {
      merchantId,
      payoutId,
      confirmations: table.confirmations,
      found: foundOf(payout),
    })
    if (!kept?.believed) return 'not-yet'
    await tellLostResult(tx, payout, kept.untold, ledger)
    if (kept.sent) await storeDecisions(tx, ledger, [recoverAbsent(payout, accountId, exchange, table)])
    return 'told'
  })
}

function foundOf({ state, attempt }: Payout): Found {
  if (isEnd(state)) return state
  return attempt === 0 ? 'never-sent' : 'not-found'
}

/** `untold`: what proves an end that was published, whose result was not; null: there is none. */
function tellLostResult(
  tx: Transaction,
  payout: Payout,
  untold: EvidenceSource | null,
  { topics, encode }: Ledger,
): Promise<void> {
  if (untold === null) return Promise.resolve()
  const ended = { payout, from: null, source: untold, faults: [], at: tx.now }
  return storeOutbox(
    tx,
    messagesAbout(ended, topics, encode).filter(({ topic }) => topic === topics.results),
  )
}

function settleFound(
  { by, reason }: Fence,
  key: Payout,
  report: OrderReport,
  { accountId, table }: AskedAccount,
  { ledger, judge }: RecoveryDeps,
): Promise<void> {
  const note = `${by}: ${reason} (the ledger was restored, and the gateway has this order)`
  return ledger.db.transaction('settle recovered', async (tx) => {
    const [payout] = await lockPayouts(tx, [key])
    if (!payout) throw new Error(`payout ${key.merchantId}:${key.payoutId} is gone`)
    const { merchantId, payoutId } = payout
    const { decisions, after, sent } = recover(payout, { report, accountId }, note, judge, table, tx.now)
    await storeDecisions(tx, ledger, decisions)
    if (sent) {
      await tx.run(recordAttempts, { merchantId, payoutId, orderNo: payout.orderNo, first: 1, last: 1 })
    }
    const [kept] = await tx.run(keepFound, { merchantId, payoutId, found: after.state })
    await tellLostResult(tx, after, kept?.untold ?? null, ledger)
  })
}

/** What a recovery came to. `open`: something is still to be asked about, so the merchant stays fenced. */
export type Outcome = { kind: 'recovered' | 'open'; findings: Findings }

/** Takes the fence down if every payout on the list was told of, and cancels what was to be cancelled meanwhile. */
export function takeDown({ merchantId, by, reason }: Fence, ledger: Ledger): Promise<Outcome> {
  return ledger.db.transaction('unfence merchant', async (tx) => {
    await tx.run(lockFence, { merchantId })
    const findings = await tx.run(tally, { merchantId })
    if (findings.some(({ found }) => found === null)) return { kind: 'open', findings }
    const note = `${by}: ${reason} (the ledger was restored, and the gateway has no such order)`
    await cancelRequested(tx, { merchantId }, note, ledger)
    await tx.run(forgetList, { merchantId })
    await tx.run(takeFenceDown, { merchantId })
    return { kind: 'recovered', findings }
  })
}

/** Cancels what was to be cancelled while the merchant was fenced. Of what was sent after all a person decides. */
export async function cancelRequested(
  tx: Transaction,
  { merchantId }: Pick<Fence, 'merchantId'>,
  note: string,
  ledger: Ledger,
): Promise<void> {
  const asked = await tx.run(lockCancelRequested, { merchantId })
  const decisions = asked.map((payout) => {
    const after =
      payout.attempt === 0
        ? become(payout, 'cancelled', { reason: 'cancelled' })
        : become(payout, 'review', { reason: CANCEL_REQUESTED })
    return change(payout, after, 'OPERATOR', { note })
  })
  await storeDecisions(tx, ledger, decisions)
}
