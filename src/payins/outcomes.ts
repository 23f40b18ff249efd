import type { AnomalyKind } from '../domain/anomaly-kinds.ts'
import { UNKEPT } from '../domain/evidence.ts'
import type { Instant } from '../domain/instant.ts'
import { applyEvidence, besides, withWhatItSays } from '../domain/payin/apply-evidence.ts'
import type { PayinCallback, PayinQueryAnswer, PayinReport } from '../domain/payin/gateway-answers.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { recordNothingFound } from '../domain/payin/record-query-answer.ts'
import { isEnd } from '../domain/payin/states.ts'
import { anomaly } from '../domain/payin/transition.ts'
import { nextQueryAt, type QueryPolicy } from '../domain/payout/next-query.ts'
import { askAboutOrders } from '../ledger/callbacks/sql/lost-callbacks.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { mayConclude, settingsInForceOf, sinceMixed } from '../ledger/settings-in-force.ts'
import type { InForce } from '../ledger/sql/settings-in-force.ts'
import type { Counter } from '../platform/metrics.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { type CallbackOrigin, withAccountsOfKeys } from '../stages/outcomes/accounts-of-key.ts'
import { CallbackEndpoint, type CallbackEndpointDeps } from '../stages/outcomes/callback-endpoint.ts'
import { outcomeLabel } from '../stages/outcomes/outcome-label.ts'
import type { QueryContext } from '../stages/outcomes/poller.ts'
import { keyOf, lockPayins, type PayinKey, storePayins } from './store.ts'

/** A report about one payin, or an unknown one, from a callback or a query; times by the database's clock. */
export type PayinEvidence = PayinKey &
  (
    | (CallbackOrigin & { report: PayinCallback })
    | ({ source: 'QUERY'; answer: PayinQueryAnswer } & QueryContext)
  )

/** What payoutd checks a merchant's evidence against: the merchant number at each of its accounts, and its query policy. */
export type PayinTerms = { mchIds: ReadonlyMap<string, string>; queryPolicy: QueryPolicy }

export type PayinOutcomesDeps = {
  ledger: Ledger
  terms: ReadonlyMap<string, PayinTerms>
  counted: Counter<'source' | 'outcome'>
}

/**
 * The only way that a report of the gateway changes an existing payin: load, decide, store, in one transaction. It applies the
 * reports about one payin in order. Resolves once they are stored; one result per item.
 */
export async function applyPayinEvidenceBatch(
  evidence: readonly PayinEvidence[],
  deps: PayinOutcomesDeps,
): Promise<undefined[]> {
  const decisions = await deps.ledger.db.transaction('settle payins', async (tx) => {
    const payins = new Map((await lockPayins(tx, evidence)).map((payin) => [keyOf(payin), payin]))
    const inForce = await settingsInForceOf(tx, evidence)
    const known = await withAccountsOfKeys(tx, evidence, (each, accountIds) => {
      const accountId = payins.get(keyOf(each))?.accountId ?? null
      return accountId !== null && !accountIds.includes(accountId)
    })
    const decisions = known.map((said) => {
      const each = countedBy(inForce, said)
      const payin = sinceMixed(payins.get(keyOf(each)), each, inForce)
      const decision = decide(each, payin, deps.terms.get(each.merchantId) as PayinTerms, tx.now)
      if ('change' in decision) payins.set(keyOf(each), decision.change.after)
      return decision
    })
    await storePayins(tx, deps.ledger, decisions)
    await queryAboutDoubtful(tx, evidence, decisions, deps.terms)
    return decisions
  })
  decisions.forEach((decision, i) => {
    deps.counted.inc({
      source: (evidence[i] as PayinEvidence).source,
      outcome: outcomeLabel(decision, isEnd),
    })
  })
  return evidence.map(() => undefined)
}

/** payoutd no longer asks about a paid payin, so without a query nobody would learn what a doubtful callback means. */
async function queryAboutDoubtful(
  tx: Transaction,
  evidence: readonly PayinEvidence[],
  decisions: readonly PayinDecision[],
  terms: PayinOutcomesDeps['terms'],
): Promise<void> {
  const unasked = evidence.filter((each, i) => {
    const decision = decisions[i] as PayinDecision
    const isInDoubt = each.source === 'CALLBACK' && each.report.doubt
    return isInDoubt && 'change' in decision && decision.change.after.state === 'paid'
  })
  const orders = unasked.map(({ merchantId, payinId }) => ({
    ...{ merchantId, orderNo: payinId },
    waitMs: nextQueryAt(0, (terms.get(merchantId) as PayinTerms).queryPolicy, 0),
  }))
  if (orders.length > 0) await tx.run(askAboutOrders, { kind: 'payin', orders })
}

/** By settings no longer in force, and while answers are mixed up, a "not found" does not count. */
function countedBy(inForce: ReadonlyMap<string, InForce>, evidence: PayinEvidence): PayinEvidence {
  if (evidence.source === 'CALLBACK') return evidence
  return mayConclude(evidence, inForce.get(evidence.merchantId)) ? evidence : { ...evidence, presence: false }
}

export const orderOf = ({ payinId }: PayinEvidence): string => payinId

/** The same evidence without the texts that are kept only for people. */
export function withoutTexts(evidence: PayinEvidence): PayinEvidence {
  if (evidence.source === 'CALLBACK') return { ...evidence, report: bareReport(evidence.report) }
  const { answer } = evidence
  return answer.kind === 'known'
    ? { ...evidence, answer: { ...answer, report: bareReport(answer.report) } }
    : { ...evidence, answer: { ...answer, exchange: UNKEPT } }
}

const bareReport = <Report extends PayinReport>(report: Report): Report => ({
  ...report,
  errorMessage: null,
  voucherMap: null,
  exchange: UNKEPT,
})

function decide(
  evidence: PayinEvidence,
  payin: Payin | undefined,
  { mchIds, queryPolicy }: PayinTerms,
  now: Instant,
): PayinDecision {
  if (evidence.source === 'QUERY') {
    if (!payin) return { nothing: true }
    const { answer } = evidence
    return answer.kind === 'known'
      ? applyEvidence(payin, answer.report, 'QUERY', evidence.queryPolicy, now)
      : recordNothingFound(payin, answer, evidence, evidence.queryPolicy, now)
  }
  const { report, accountIds } = evidence
  const odd = (kind: AnomalyKind, detail: string) =>
    anomaly(evidence, 'CALLBACK', kind, withWhatItSays(detail, report), report.exchange)
  if (!payin) return odd('unknown-order', 'a signed callback came for a payin that payoutd never created')
  if (payin.accountId !== null && !accountIds.includes(payin.accountId)) {
    const from = accountIds.join(', ')
    const detail = `gateway account ${from} reports a payin that was created at account ${payin.accountId}`
    return besides(payin, report, 'CALLBACK', { kind: 'other-account', detail }, queryPolicy, now)
  }
  const ours = accountIds.map((accountId) => mchIds.get(accountId))
  if (report.mchId !== null && !ours.includes(report.mchId)) {
    return odd('merchant-mismatch', `the gateway says ${report.mchId}, ours is ${ours.join(', ')}`)
  }
  return applyEvidence(payin, report, 'CALLBACK', queryPolicy, now)
}

/** The callback endpoint for payins. */
export const payinCallbackEndpoint = (deps: PayinOutcomesDeps & CallbackEndpointDeps<PayinCallback>) =>
  new CallbackEndpoint<PayinCallback, PayinEvidence>(
    {
      kind: 'payin',
      evidenceOf: (merchantId, callback) => ({
        ...{ merchantId, payinId: callback.report.mchOrderNo, source: 'CALLBACK' },
        ...callback,
      }),
      apply: (evidence, ledger) => applyPayinEvidenceBatch(evidence, { ...deps, ledger }),
      withoutTexts,
      orderOf,
    },
    deps,
  )
