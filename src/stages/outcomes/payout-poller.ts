import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { PayoutKey } from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import { NOBODY_TO_ASK } from '../../domain/payout/next-query.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { become, change, wasNeverSent } from '../../domain/payout/transition.ts'
import { askAboutOrders } from '../../ledger/callbacks/sql/lost-callbacks.ts'
import { fencedMerchants, keyOf, storeDecisions } from '../../ledger/ledger.ts'
import { settingsInForce } from '../../ledger/sql/settings-in-force.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { knownBeside } from './known-orders.ts'
import {
  applyEvidenceBatch,
  type OutcomesDeps,
  orderOf,
  type PayoutEvidence,
  withoutTexts,
} from './outcomes.ts'
import { Poller, type PollerDeps } from './poller.ts'
import { dueQuestions, dueTimers, lockDue } from './sql/due.ts'

export type PayoutPollerDeps = OutcomesDeps & PollerDeps<QueryAnswer>

/** When to look again at payouts of a merchant that is fenced. */
const LATER_MS = 60_000
const OUTCOMES = { found: 'order', 'not-found': 'no-order', unknown: 'nothing' } as const

/** A payout that is due. `isFenced`: its merchant is. */
type DuePayout = Payout & { isFenced: boolean }

/** Queues scheduled payouts, handles ended leases and deadlines, and asks the gateway about the outcome of the others. */
export const payoutPoller = (deps: PayoutPollerDeps) =>
  new Poller<PayoutKey, DuePayout, Decision, QueryAnswer, PayoutEvidence>(
    {
      kind: 'payout',
      mostQueries: 64,
      mostAtOnce: 3,
      mostTimers: 200,
      idleMs: 250,
      keyOf,
      about: ({ merchantId, payoutId }) => ({ merchantId, payoutId, orderNo: null }),
      findTimers: (db, ofEach) => db.run(dueTimers, { ofEach }),
      findQuestions: (db, limits) => db.run(dueQuestions, { limits }),
      transaction: (db, work) => db.transaction('take due payouts', work),
      async lock(tx, merchantId, keys) {
        const payouts = await tx.run(lockDue, { merchantId, payoutIds: keys.map(({ payoutId }) => payoutId) })
        const isFenced = payouts.length > 0 && (await fencedMerchants(tx)).has(merchantId)
        return payouts.map((payout) => ({ ...payout, isFenced }))
      },
      async decide(tx, { isFenced, ...payout }, querier) {
        // It may have been sent all the same, so it must not expire.
        if (isFenced && mustWait(payout)) return postpone(payout, tx.now + LATER_MS)
        const decision = deps.decisions.onTimer(payout, querier?.queryPolicy ?? NOBODY_TO_ASK, tx.now)
        if (!('ask' in decision)) return decision
        if (!querier) return withoutAccount(tx, payout, deps)
        return { ask: payout, postponed: (until) => postpone({ ...payout, askedAt: tx.now }, until) }
      },
      store: storeDecisions,
      outcomeOf: ({ kind }) => OUTCOMES[kind],
      knownOrders: async (db, { merchantId, payoutId }, accountId) =>
        payoutId === null ? [] : knownBeside(db, { merchantId, payoutId, accountId }),
      evidenceOf: ({ merchantId, orderNo }, answer, context) => ({
        ...{ merchantId, mchOrderNo: orderNo, source: 'QUERY', answer },
        ...context,
      }),
      apply: (evidence, ledger) => applyEvidenceBatch(evidence, { ...deps, ledger }),
      withoutTexts,
      orderOf,
    },
    deps,
  )

/** The recovery decides about payouts that a fenced ledger believes unsent, or that are to be cancelled. */
const mustWait = (payout: Payout): boolean =>
  payout.attempt === 0 ||
  ((payout.state === 'held' || payout.state === 'queued') &&
    (payout.cancelRequest !== null || wasNeverSent(payout)))

/**
 * payoutd cannot ask about this payout. If the settings in force lack the account, it goes to review at once, and a process that has
 * the account all the same asks about it; a process whose settings are not in force leaves it to the others. If the merchant is not
 * in these settings, it goes to review at its deadline.
 */
async function withoutAccount(
  tx: Transaction,
  payout: Payout,
  { queriers }: PayoutPollerDeps,
): Promise<Decision> {
  const [ours] = queriers.get(payout.merchantId) ?? []
  if (!ours) return { nothing: true }
  const [inForce] = await tx.run(settingsInForce, { merchantIds: [payout.merchantId] })
  if (inForce?.settingsHash !== ours.settingsHash) return { nothing: true }
  const { merchantId, orderNo } = payout
  if (orderNo !== null)
    await tx.run(askAboutOrders, { kind: 'payout', orders: [{ merchantId, orderNo, waitMs: 0 }] })
  const note = `the settings have no gateway account ${payout.accountId}, where the payout may be: add it to formerAccounts`
  return change(payout, become(payout, 'review', { reason: 'account-unknown' }), 'CLOCK', { note })
}

const postpone = (payout: Payout, dueAt: Instant): Decision => ({
  change: { before: payout, after: { ...payout, dueAt }, source: 'CLOCK', exchange: null },
})
