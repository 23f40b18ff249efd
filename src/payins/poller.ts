import type { Instant } from '../domain/instant.ts'
import type { PayinQueryAnswer } from '../domain/payin/gateway-answers.ts'
import { onTimer } from '../domain/payin/on-timer.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { change, isLateLook, isOver, lateLookAt, toReview, waits } from '../domain/payin/transition.ts'
import { NOBODY_TO_ASK } from '../domain/payout/next-query.ts'
import { settingsInForce } from '../ledger/sql/settings-in-force.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { bothSides } from '../stages/outcomes/known-orders.ts'
import { Poller, type PollerDeps } from '../stages/outcomes/poller.ts'
import {
  applyPayinEvidenceBatch,
  orderOf,
  type PayinEvidence,
  type PayinOutcomesDeps,
  withoutTexts,
} from './outcomes.ts'
import { dueQuestions, endedLeases, lockDue, overdueOfOthers } from './sql/due.ts'
import { payinsBeside } from './sql/known-payins.ts'
import { keyOf, type PayinKey, storePayins } from './store.ts'

/** How payoutd asks one gateway account of a merchant about a payin, without requesting a callback. */
export type PayinPollerDeps = PayinOutcomesDeps & PollerDeps<PayinQueryAnswer>

/** When to look again at a payin whose account is not in the settings. */
const LATER_MS = 60_000
/** The same after its time is over, or after it has ended. */
const ENDED_LATER_MS = 600_000
/** A process that has the merchant would have asked about a payin, or handed it to a person, this long after its time. */
const OVERDUE_MS = 3_600_000
const OUTCOMES = { known: 'order', 'not-found': 'no-order', retry: 'nothing', unknown: 'nothing' } as const

/** Handles ended leases, asks about payins without a callback, and hands a payin to a person if nobody can ask about it. */
export const payinPoller = (deps: PayinPollerDeps) =>
  new Poller<PayinKey, Payin, PayinDecision, PayinQueryAnswer, PayinEvidence>(
    {
      kind: 'payin',
      mostQueries: 16,
      mostAtOnce: 2,
      mostTimers: 100,
      idleMs: 500,
      keyOf,
      about: ({ merchantId, payinId }) => ({ merchantId, payoutId: null, orderNo: payinId }),
      async findTimers(db, ofEach, merchantIds) {
        const ended = await db.run(endedLeases, { ofEach })
        return [...ended, ...(await db.run(overdueOfOthers, { merchantIds, ofEach, overdueMs: OVERDUE_MS }))]
      },
      findQuestions: (db, limits) => db.run(dueQuestions, { limits }),
      transaction: (db, work) => db.transaction('take due payins', work),
      lock: (tx, merchantId, keys) =>
        tx.run(lockDue, { merchantId, payinIds: keys.map(({ payinId }) => payinId) }),
      async decide(tx, payin, querier) {
        const decision = onTimer(payin, querier?.queryPolicy ?? NOBODY_TO_ASK, tx.now)
        if (!('ask' in decision)) return decision
        if (!querier) return withoutAccount(tx, payin, deps)
        const { merchantId, payinId } = payin
        return {
          ask: { merchantId, payoutId: null, orderNo: payinId },
          postponed: (until) => postpone({ ...payin, askedAt: tx.now }, until),
        }
      },
      store: storePayins,
      outcomeOf: ({ kind }) => OUTCOMES[kind],
      async knownOrders(db, { merchantId, orderNo }, accountId) {
        const [beside] = await db.run(payinsBeside, { merchantId, payinId: orderNo ?? '', accountId })
        return beside ? bothSides(beside) : []
      },
      evidenceOf: ({ merchantId, orderNo }, answer, context) => ({
        ...{ merchantId, payinId: orderNo, source: 'QUERY', answer },
        ...context,
      }),
      apply: (evidence, ledger) => applyPayinEvidenceBatch(evidence, { ...deps, ledger }),
      withoutTexts,
      orderOf,
    },
    deps,
  )

/**
 * payoutd cannot ask until the merchant or the account is back in the settings. It hands the payin to a person when its time is
 * over, and the payin waits on. A process whose settings are not in force, or lack the merchant, leaves it to the processes that
 * have it. The ledger does not know which processes exist, so only time shows that none has the merchant.
 */
async function withoutAccount(
  tx: Transaction,
  payin: Payin,
  { queriers }: PayinPollerDeps,
): Promise<PayinDecision> {
  const { merchantId, accountId, expiresAt } = payin
  const [ours] = queriers.get(merchantId) ?? []
  if (!ours) {
    if (!waits(payin) || tx.now < expiresAt + OVERDUE_MS) return { nothing: true }
    return toPerson(
      payin,
      `no process could query it, because the settings lack its merchant: put merchant ${merchantId} back`,
      tx.now,
    )
  }
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [merchantId] })
  if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
  if (!waits(payin))
    return postpone(payin, isLateLook(payin) ? lateLookAt(payin, tx.now) : tx.now + ENDED_LATER_MS)
  if (!isOver(payin, tx.now)) return postpone(payin, Math.min(tx.now + LATER_MS, expiresAt))
  const note = `the settings have no gateway account ${accountId}, where the payin is: add it to formerAccounts`
  return toPerson(payin, note, tx.now)
}

function toPerson(payin: Payin, note: string, now: Instant): PayinDecision {
  const after = { ...toReview(payin, 'account-unknown', now), dueAt: now + ENDED_LATER_MS }
  return change(payin, after, 'CLOCK', { note })
}

const postpone = (payin: Payin, dueAt: Instant | null): PayinDecision =>
  change(payin, { ...payin, dueAt }, 'CLOCK', null)
