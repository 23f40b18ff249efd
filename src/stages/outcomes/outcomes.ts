import type { Decisions } from '../../domain/decisions.ts'
import { type OrderReport, UNKEPT } from '../../domain/evidence.ts'
import type { QueryAnswer } from '../../domain/gateway-answers.ts'
import type { Instant } from '../../domain/instant.ts'
import { mayShowOrder, reportedThere, withWhatItSays } from '../../domain/payout/apply-evidence.ts'
import { NEVER_SENT } from '../../domain/payout/ledger-lacks-attempt.ts'
import { inconclusive, isAskedAbout, nextQueryAt, type QueryPolicy } from '../../domain/payout/next-query.ts'
import type { Anomaly, Decision, Payout } from '../../domain/payout/payout.ts'
import { reportedElsewhere } from '../../domain/payout/reported-elsewhere.ts'
import { isOfPayment } from '../../domain/payout/several-orders.ts'
import { isEnd } from '../../domain/payout/states.ts'
import { cannotBeThere } from '../../domain/payout/transition.ts'
import { askAboutOrders } from '../../ledger/callbacks/sql/lost-callbacks.ts'
import { storeEvidence } from '../../ledger/evidence/store-evidence.ts'
import { type Ledger, lockOrders } from '../../ledger/ledger.ts'
import { mayConclude, settingsInForceOf, sinceMixed } from '../../ledger/settings-in-force.ts'
import type { InForce } from '../../ledger/sql/settings-in-force.ts'
import type { Logger } from '../../platform/log.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { Counter } from '../../platform/metrics.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { cutText } from '../../text/text.ts'
import { type CallbackOrigin, withAccountsOfKeys } from './accounts-of-key.ts'
import { CallbackEndpoint, type CallbackEndpointDeps } from './callback-endpoint.ts'
import { outcomeLabel } from './outcome-label.ts'
import { returnedAmong, toldAfterReturn } from './paid-after-return.ts'
import type { QueryContext } from './poller.ts'
import { accountsOfAttempts } from './sql/attempts.ts'

/** What a callback or a query reported about one order of one merchant; times by the database's clock. */
export type PayoutEvidence = {
  merchantId: string
  mchOrderNo: string
} & ((CallbackOrigin & { report: OrderReport }) | ({ source: 'QUERY'; answer: QueryAnswer } & QueryContext))

export type OutcomesDeps = {
  ledger: Ledger
  decisions: Decisions
  /** By merchant: the query policy of the account in its settings. */
  queryPolicies: ReadonlyMap<string, QueryPolicy>
  counted: Counter<'source' | 'outcome'>
  log: Logger
}

/**
 * The only way by which the gateway's reports change a payout: load, decide and store, in one transaction. Reports about one
 * payout apply in their order. Resolves once everything is stored, to one result per item.
 */
export async function applyEvidenceBatch(
  given: readonly PayoutEvidence[],
  deps: OutcomesDeps,
): Promise<undefined[]> {
  const load = async (tx: Transaction) => {
    const locked = await lockOrders(tx, given)
    const known = new Map(locked.map((payout) => [mapKey(payout.merchantId, payout.orderNo ?? ''), payout]))
    const evidence = await withAccountsOfKeys(tx, given, ({ merchantId, mchOrderNo }, accountIds) => {
      const payout = known.get(mapKey(merchantId, mchOrderNo))
      return payout !== undefined && mayBeElsewhere(payout, accountIds)
    })
    const inForce = await settingsInForceOf(tx, evidence)
    const attemptsAt = await attemptsElsewhere(tx, evidence, known)
    const returned = await returnedAmong(
      tx,
      evidence.map((each) => ({
        payout: known.get(mapKey(each.merchantId, each.mchOrderNo)),
        report: reportIn(each),
      })),
    )
    return (fenced: ReadonlySet<string>) => {
      const payouts = new Map(known)
      return evidence.map((each) => {
        const key = mapKey(each.merchantId, each.mchOrderNo)
        const queryPolicy = queryPolicyFor(each, deps.queryPolicies, inForce)
        const payout = sinceMixed(payouts.get(key), each, inForce)
        const settled = decide(each, payout, deps.decisions, queryPolicy, attemptsAt, tx.now)
        const decided = toldAfterReturn(settled, { payout, report: reportIn(each) }, each.source, returned)
        const isFenced = fenced.has(each.merchantId)
        const decision = isFenced ? deps.decisions.whileFenced(decided, queryPolicy, tx.now) : decided
        if ('change' in decision) payouts.set(key, decision.change.after)
        return decision
      })
    }
  }
  const decisions = await storeEvidence(deps, 'settle payouts', load, {
    isFound: (i) => isFound(given[i] as PayoutEvidence),
    alsoStore: (tx, decided) => queryAboutDoubtful(tx, given, decided, deps.queryPolicies),
  })
  decisions.forEach((decision, i) => {
    deps.counted.inc({
      source: (given[i] as PayoutEvidence).source,
      outcome: outcomeLabel(decision, isEnd),
    })
  })
  return given.map(() => undefined)
}

/**
 * Makes payoutd ask about payouts that it does not ask about otherwise, such as ended ones: after a callback in doubt, which
 * would have no effect, and after a report that the order of a failed payout is alive, which may be an older one that came late.
 */
async function queryAboutDoubtful(
  tx: Transaction,
  evidence: readonly PayoutEvidence[],
  decisions: readonly Decision[],
  queryPolicies: OutcomesDeps['queryPolicies'],
): Promise<void> {
  const unasked = evidence.filter((each, i) => {
    const decision = decisions[i] as Decision
    if (!('change' in decision)) return false
    const { before, after } = decision.change
    const isAlive = after.saidOtherwise === 'alive' && before.saidOtherwise === null
    return (reportIn(each)?.doubt || isAlive) && !isAskedAbout(after)
  })
  const orders = unasked.map(({ merchantId, mchOrderNo }) => ({
    ...{ merchantId, orderNo: mchOrderNo },
    waitMs: nextQueryAt(0, queryPolicies.get(merchantId) as QueryPolicy, 0),
  }))
  if (orders.length > 0) await tx.run(askAboutOrders, { kind: 'payout', orders })
}

function queryPolicyFor(
  evidence: PayoutEvidence,
  queryPolicies: OutcomesDeps['queryPolicies'],
  inForce: ReadonlyMap<string, InForce>,
): QueryPolicy {
  const { merchantId } = evidence
  if (evidence.source === 'CALLBACK') return queryPolicies.get(merchantId) as QueryPolicy
  return mayConclude(evidence, inForce.get(merchantId))
    ? evidence.queryPolicy
    : inconclusive(evidence.queryPolicy)
}

export const orderOf = ({ mchOrderNo }: PayoutEvidence): string => mchOrderNo

/** The same evidence without the parts that are only stored for people to read. */
export function withoutTexts(evidence: PayoutEvidence): PayoutEvidence {
  if (evidence.source === 'CALLBACK') return { ...evidence, report: bareReport(evidence.report) }
  const { answer } = evidence
  return answer.kind === 'found'
    ? { ...evidence, answer: { ...answer, report: bareReport(answer.report) } }
    : { ...evidence, answer: { ...answer, exchange: UNKEPT } }
}

const bareReport = (report: OrderReport): OrderReport => ({ ...report, errorMessage: null, exchange: UNKEPT })

function decide(
  evidence: PayoutEvidence,
  known: Payout | undefined,
  decisions: Decisions,
  queryPolicy: QueryPolicy,
  attemptsAt: AttemptsAt,
  now: Instant,
): Decision {
  if (!known) return unknownOrder(evidence)
  const from = accountsOf(evidence)
  const report = reportIn(evidence)
  const accountId = attemptsAt(known, from)
  const elsewhere = { from, accountId }
  // A query was under way while the payout went on at another account.
  if (isFromElsewhere(known, from)) {
    if (!report) return { nothing: true }
    return reportedElsewhere(known, report, evidence.source, elsewhere, queryPolicy, now)
  }
  // An account that reports an order without a known live attempt has that order. A doubted one may have others elsewhere.
  const isToBind = known.accountId === null && !known.doubted && !report?.doubt
  const payout = isToBind ? { ...known, accountId: accountId ?? from[0] ?? null } : known
  if (report && mayShowOrder(report)) {
    if (cannotBeThere(known)) return reportedThere(payout, report, evidence.source)
    if (isToBind && known.turnedAway && accountId === null)
      return reportedElsewhere(known, report, evidence.source, elsewhere, queryPolicy, now)
  }
  const decision = reported(evidence, known, payout, decisions, queryPolicy, now)
  if (!('change' in decision)) return decision
  // A payment belongs to the account that reported it: now, or later by a report that names it.
  const { after } = decision.change
  if (after.state !== 'paid' || after.accountId !== null) return decision
  const isItsReport = known.state !== 'paid' || (report?.status === 'success' && isOfPayment(known, report))
  if (!isItsReport) return decision
  const paid = { ...after, accountId: accountId ?? from[0] ?? null }
  return { ...decision, change: { ...decision.change, after: paid } }
}

/** `payout`: as `known`, at the account that reported its order. */
function reported(
  evidence: PayoutEvidence,
  known: Payout,
  payout: Payout,
  decisions: Decisions,
  queryPolicy: QueryPolicy,
  now: Instant,
): Decision {
  if (evidence.source === 'CALLBACK')
    return decisions.applyEvidence(payout, evidence.report, 'CALLBACK', queryPolicy, now)
  const { answer } = evidence
  switch (answer.kind) {
    case 'found':
      return decisions.applyEvidence(payout, answer.report, 'QUERY', queryPolicy, now, evidence.askedAt)
    case 'not-found':
      return decisions.recordAbsence(known, answer.exchange, evidence, queryPolicy, now)
    case 'unknown':
      return decisions.recordNoAnswer(known, answer.exchange, queryPolicy, now)
  }
}

const accountsOf = (evidence: PayoutEvidence): readonly string[] =>
  evidence.source === 'CALLBACK' ? evidence.accountIds : [evidence.accountId]

/** Whether it comes from another account than the one where an attempt may be alive. */
const isFromElsewhere = ({ accountId }: Payout, from: readonly string[]): boolean =>
  accountId !== null && !from.includes(accountId)

/** The same of a payout whose attempts must be looked up to tell. */
const mayBeElsewhere = (payout: Payout, from: readonly string[]): boolean =>
  payout.accountId === null ? payout.attempt > 0 : isFromElsewhere(payout, from)

/** The first of these accounts at which, as far as the ledger knows, an attempt of the payout may have been made; null: none. */
type AttemptsAt = (payout: Payout, accountIds: readonly string[]) => string | null

/** Looks up the attempts of the payouts that have no known account, or that evidence from another one may be about: few. */
async function attemptsElsewhere(
  tx: Transaction,
  evidence: readonly PayoutEvidence[],
  byOrder: ReadonlyMap<string, Payout>,
): Promise<AttemptsAt> {
  const elsewhere = evidence.flatMap((each) => {
    const payout = byOrder.get(mapKey(each.merchantId, each.mchOrderNo))
    return payout && mayBeElsewhere(payout, accountsOf(each)) ? [payout] : []
  })
  const payouts = [...new Set(elsewhere)]
  const made = payouts.length > 0 ? await tx.run(accountsOfAttempts, { payouts }) : []
  return ({ merchantId, payoutId }, accountIds) => {
    const accounts = made.filter((each) => each.merchantId === merchantId && each.payoutId === payoutId)
    const known = accountIds.find((id) => accounts.some(({ accountId }) => accountId === id))
    const isAnywhere = accounts.some(({ accountId }) => accountId === null)
    return known ?? (isAnywhere ? (accountIds[0] ?? null) : null)
  }
}

const isFound = (evidence: PayoutEvidence): boolean =>
  evidence.source === 'QUERY' && evidence.answer.kind === 'found'

function reportIn(evidence: PayoutEvidence): OrderReport | null {
  if (evidence.source === 'CALLBACK') return evidence.report
  return evidence.answer.kind === 'found' ? evidence.answer.report : null
}

function unknownOrder(evidence: PayoutEvidence): Decision {
  const report = reportIn(evidence)
  const { kind, detail } = ofUnknownOrder(evidence)
  return {
    anomaly: {
      merchantId: evidence.merchantId,
      payoutId: null,
      orderNo: cutText(evidence.mchOrderNo, 64),
      kind,
      detail: report ? withWhatItSays(detail, report) : detail,
      source: evidence.source,
      exchange: report?.exchange ?? null,
    },
  }
}

/** Anybody with access to the merchant's account can create orders; one that payoutd asks about was in the ledger. */
const ofUnknownOrder = ({ source }: PayoutEvidence): Pick<Anomaly, 'kind' | 'detail'> =>
  source === 'CALLBACK'
    ? { kind: 'unknown-order', detail: 'a signed callback came for an order that payoutd never sent' }
    : { kind: NEVER_SENT, detail: 'an order that payoutd asked the gateway about is gone from the ledger' }

/** The callback endpoint for payouts. */
export const payoutCallbackEndpoint = (deps: OutcomesDeps & CallbackEndpointDeps<OrderReport>) =>
  new CallbackEndpoint<OrderReport, PayoutEvidence>(
    {
      kind: 'payout',
      evidenceOf: (merchantId, callback) => ({
        ...{ merchantId, mchOrderNo: callback.report.mchOrderNo, source: 'CALLBACK' },
        ...callback,
      }),
      apply: (evidence, ledger) => applyEvidenceBatch(evidence, { ...deps, ledger }),
      withoutTexts,
      orderOf,
    },
    deps,
  )
