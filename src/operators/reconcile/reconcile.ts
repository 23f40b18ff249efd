import { randomUUID } from 'node:crypto'
import type { BalanceAnswer, QueryAnswer } from '../../domain/gateway-answers.ts'
import { payoutKey } from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import { sum } from '../../domain/money.ts'
import { openPayouts } from '../../ledger/open-payouts.ts'
import { json } from '../../messages/json.ts'
import { every, pages } from '../../platform/postgres/pages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { type Ending, queryEach } from '../query-each.ts'
import { compare } from './compare.ts'
import {
  askAgain,
  keepAnswer,
  listPayouts,
  payoutHere,
  progress,
  type ReconcileProgress,
  unasked,
} from './sql/payouts.ts'
import {
  begin,
  finish,
  type Reconciliation,
  reconciliationById,
  reopen,
  serverClock,
  unfinished,
} from './sql/reconciliations.ts'

export type FoundOrder = Extract<QueryAnswer, { kind: 'found' }>

export type AskDeps = {
  db: Database
  /**
   * Asks the gateway account that an order was sent to; null: the one in the settings. Never rejects. Resolves to null if the
   * settings lack that account, so that nobody can ask.
   */
  query: (mchOrderNo: string, accountId: string | null) => Promise<QueryAnswer | null>
  /** Applies that account's report about an order as evidence of the moment of the query; null: the run changes no payout. */
  settle:
    | ((mchOrderNo: string, answer: FoundOrder, accountId: string | null, askedAt: Instant) => Promise<void>)
    | null
  ratePerSecond: number
  clock: Clock
  /** Ends the run; a query under way is still stored. */
  signal: AbortSignal
  onProgress: (asked: number, listed: number) => void
}

/** How often one run asks about a payout while the gateway does not answer about it. */
const PASSES = 3
/** How often the run looks again at a payout that moves during its query. */
const LOOKS = 3

/** The run with this id, ended or not; null: there is none. */
export const findReconciliation = async (
  db: Database,
  reconciliationId: string,
): Promise<Reconciliation | null> => (await db.run(reconciliationById, { reconciliationId }))[0] ?? null

/** Resumes the interrupted run about this period, or opens a new one and asks for the balance of this account. */
export async function openReconciliation(
  { accountId, ...period }: { merchantId: string; accountId: string; from: Instant; to: Instant },
  { db, balance }: { db: Database; balance: () => Promise<BalanceAnswer> },
): Promise<Reconciliation> {
  const [interrupted] = await db.run(unfinished, period)
  if (interrupted) return interrupted
  const [asking] = await db.run(serverClock, {})
  if (!asking) throw new Error('the server did not return the time')
  const answer = await balance()
  const open = (await openPayouts(db, period.merchantId)).filter(
    (each) => each.accountId === null || each.accountId === accountId,
  )
  const [begun] = await db.write('begin reconciliation', begin, {
    ...period,
    accountId,
    startedAt: asking.now,
    reconciliationId: randomUUID(),
    balance: answer.kind === 'balance' ? answer.amount : null,
    inFlight: sum(open.map(({ attempted }) => attempted)),
  })
  if (!begun) throw new Error('a reconciliation was begun and is not there')
  return begun
}

/**
 * The result of the queries. `run`: its state now. `inVain`: payouts that the run asked about now without an answer; `missing`:
 * accounts that the settings lack, so that the run could not ask about their payouts.
 */
export type AskedAll = { ending: Ending; inVain: number; missing: string[]; run: Reconciliation }

/**
 * Asks the gateway about every payout of the run without an answer so far, compares, and stores the differences; with `settle`,
 * asks once more about those that differ. A run with all answers is finished; any other resumes at the next call.
 */
export async function askAll(run: Reconciliation, deps: AskDeps): Promise<AskedAll> {
  const { db } = deps
  const { reconciliationId, merchantId, periodFrom: from, periodTo: to } = run
  if (deps.settle) {
    await every((page) => db.write('ask again', askAgain, { reconciliationId, ...page }))
    await db.run(reopen, { reconciliationId })
  } else if (run.finishedAt !== null) return { ending: 'all-asked', inVain: 0, missing: [], run }
  const period = { reconciliationId, merchantId, from, to }
  await every((page) => db.write('list payouts to reconcile', listPayouts, { ...period, ...page }))
  const tally = await tallyOf(run, deps)
  const inVain = new Set<string>()
  const missing = new Set<string>()
  const ending = await queryEach({
    ...deps,
    passes: PASSES,
    betweenMs: 0,
    waiting: (after, limit) => db.run(unasked, { reconciliationId, after, limit }),
    async ask(payoutId) {
      const result = await askOne(run, payoutId, deps)
      if (result !== 'answered') {
        inVain.add(payoutId)
        if (result === 'silent') return result
        missing.add(result.missing)
        return 'not-yet'
      }
      inVain.delete(payoutId)
      deps.onProgress(++tally.asked, tally.listed)
      return 'answered'
    },
  })
  // Another process may have been told what this one was not.
  const left = await db.run(unasked, { reconciliationId, after: '', limit: 1 })
  if (ending !== 'all-asked' || left.length > 0)
    return { ending, inVain: inVain.size, missing: [...missing].sort(), run }
  const [finished] = await db.write('finish reconciliation', finish, { reconciliationId })
  return { ending, inVain: 0, missing: [], run: finished ?? run }
}

async function tallyOf(run: Reconciliation, { db, onProgress }: AskDeps): Promise<ReconcileProgress> {
  const tally = await progressOf(run, db)
  onProgress(tally.asked, tally.listed)
  return tally
}

/** How far a run has come. */
export async function progressOf(
  { reconciliationId }: Reconciliation,
  db: Database,
): Promise<ReconcileProgress> {
  const all: ReconcileProgress = { asked: 0, listed: 0, firstTold: null, lastTold: null }
  for await (const page of pages((page) => db.run(progress, { reconciliationId, ...page }))) {
    for (const { asked, listed, firstTold, lastTold } of page) {
      all.asked += asked
      all.listed += listed
      if (firstTold === null || lastTold === null) continue
      all.firstTold = Math.min(all.firstTold ?? firstTold, firstTold)
      all.lastTold = Math.max(all.lastTold ?? lastTold, lastTold)
    }
  }
  return all
}

/** `missing`: the account to ask, if the settings lack it. */
async function askOne(
  run: Reconciliation,
  payoutId: string,
  deps: AskDeps,
): Promise<'answered' | 'silent' | { missing: string }> {
  const { db, settle } = deps
  const { reconciliationId, merchantId } = run
  const read = () => here(db, merchantId, payoutId)
  const { payout, answer, askedAt } = await lookOnBothSides(read, deps)
  if (answer === null) return { missing: payout.accountId ?? '' }
  if (answer.kind === 'unknown') return 'silent'
  const there = answer.kind === 'found' ? answer.report : null
  let compared = payout
  let differences = compare(compared, there)
  let settled = false
  if (differences.length > 0 && answer.kind === 'found' && settle) {
    await settle(payout.orderNo, answer, payout.accountId, askedAt)
    compared = await read()
    differences = compare(compared, there)
    settled = differences.length === 0
  }
  await db.write('keep reconciled payout', keepAnswer, {
    reconciliationId,
    payoutId,
    status: there?.status ?? null,
    amount: there?.amount ?? null,
    fee: there?.fee ?? null,
    ledgerState: compared.state,
    ledgerFee: compared.fee,
    differences: json(differences) as string,
    settled,
  })
  return 'answered'
}

/** A payout that moves during its query would differ from an answer about its earlier state. */
async function lookOnBothSides(read: () => ReturnType<typeof here>, { query }: AskDeps) {
  for (let look = 1; ; look++) {
    const { now: askedAt, ...before } = await read()
    const answer = await query(before.orderNo, before.accountId)
    const payout = await read()
    if (payout.version === before.version || look === LOOKS) return { payout, answer, askedAt }
  }
}

async function here(db: Database, merchantId: string, payoutId: string) {
  const [payout] = await db.run(payoutHere, { merchantId, payoutId })
  if (!payout) throw new Error(`payout ${payoutKey({ merchantId, payoutId })} was listed and is gone`)
  return payout
}
