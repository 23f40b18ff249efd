import { UNKEPT } from '../domain/evidence.ts'
import type { Instant } from '../domain/instant.ts'
import type { PayinCallback, PayinQueryAnswer, PayinReport } from '../domain/payin/answers.ts'
import type { Payin, PayinDecision } from '../domain/payin/payin.ts'
import { recordNothingFound } from '../domain/payin/record-query.ts'
import { settle, withWhatItSays } from '../domain/payin/settle.ts'
import { isEnd } from '../domain/payin/states.ts'
import { anomaly } from '../domain/payin/transition.ts'
import type { Asked } from '../domain/payout/record-query.ts'
import { nextQueryAt, type Timetable } from '../domain/payout/transition.ts'
import { askAboutOrders } from '../ledger/callbacks/sql/lost-callbacks.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { settingsOf } from '../ledger/settings-of.ts'
import type { Counter } from '../platform/metrics.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { keyOf, lockPayins, type PayinKey, storePayins } from './store.ts'

/** What a callback or a query said about one payin, or about one that nobody knows; times by the database's clock. */
export type Heard = PayinKey &
  /** `accountIds`: of the merchant's gateway accounts, those that signed it. */
  (
    | { source: 'CALLBACK'; report: PayinCallback; accountIds: readonly string[] }
    /** `table`: by whose dialect the answer is judged; `settingsHash`: of the merchant's settings that this is from. */
    | ({ source: 'QUERY'; table: Timetable; settingsHash: string; answer: PayinQueryAnswer } & Asked)
  )

/** What a merchant's evidence is held against: the merchant number of each of its accounts, and its dialect. */
export type Terms = { mchIds: ReadonlyMap<string, string>; table: Timetable }

export type SettlementDeps = {
  ledger: Ledger
  terms: ReadonlyMap<string, Terms>
  counted: Counter<'source' | 'outcome'>
}

/**
 * The one door through which the gateway's word changes a payin that it has: load, decide, store, in one
 * transaction. What is heard about one payin is folded in order. Resolves once it is stored; one result per
 * item.
 */
export async function settleHeard(heard: readonly Heard[], deps: SettlementDeps): Promise<undefined[]> {
  const decisions = await deps.ledger.db.transaction('settle payins', async (tx) => {
    const payins = new Map((await lockPayins(tx, heard)).map((payin) => [keyOf(payin), payin]))
    const inForce = await settingsOf(tx, heard)
    const decisions = heard.map((said) => {
      const each = onlyInForce(said, inForce)
      const decision = decide(each, payins.get(keyOf(each)), deps.terms.get(each.merchantId) as Terms, tx.now)
      if ('change' in decision) payins.set(keyOf(each), decision.change.after)
      return decision
    })
    await storePayins(tx, deps.ledger, decisions)
    await askInDoubt(tx, heard, decisions, deps.terms)
    return decisions
  })
  decisions.forEach((decision, i) => {
    deps.counted.inc({ source: (heard[i] as Heard).source, outcome: outcome(decision) })
  })
  return heard.map(() => undefined)
}

/** Of a payin that nobody asks about, as it is paid, a callback in doubt would tell nobody anything. */
async function askInDoubt(
  tx: Transaction,
  heard: readonly Heard[],
  decisions: readonly PayinDecision[],
  terms: SettlementDeps['terms'],
): Promise<void> {
  const unasked = heard.filter((each, i) => {
    const decision = decisions[i] as PayinDecision
    const isInDoubt = each.source === 'CALLBACK' && each.report.doubt
    return isInDoubt && 'change' in decision && decision.change.after.dueAt === null
  })
  if (unasked.length === 0) return
  await tx.run(askAboutOrders, {
    kind: 'payin',
    merchantIds: unasked.map(({ merchantId }) => merchantId),
    orderNos: unasked.map(({ payinId }) => payinId),
    waitsMs: unasked.map(({ merchantId }) => nextQueryAt(0, (terms.get(merchantId) as Terms).table, 0)),
  })
}

/** By settings that are in force no more, what is not found counts for nothing. */
function onlyInForce(heard: Heard, inForce: ReadonlyMap<string, string>): Heard {
  if (heard.source === 'CALLBACK') return heard
  const isInForce = heard.settingsHash === inForce.get(heard.merchantId)
  return isInForce ? heard : { ...heard, positiveControl: false }
}

/** The same evidence without what is only kept to be read. */
export function bare(heard: Heard): Heard {
  if (heard.source === 'CALLBACK') return { ...heard, report: bareReport(heard.report) }
  const { answer } = heard
  return answer.kind === 'known'
    ? { ...heard, answer: { ...answer, report: bareReport(answer.report) } }
    : { ...heard, answer: { ...answer, exchange: UNKEPT } }
}

const bareReport = <Report extends PayinReport>(report: Report): Report => ({
  ...report,
  errorMessage: null,
  voucherMap: null,
  exchange: UNKEPT,
})

function decide(
  heard: Heard,
  payin: Payin | undefined,
  { mchIds, table }: Terms,
  now: Instant,
): PayinDecision {
  if (heard.source === 'QUERY') {
    if (!payin) return { nothing: true }
    const { answer } = heard
    return answer.kind === 'known'
      ? settle(payin, answer.report, 'QUERY', heard.table, now)
      : recordNothingFound(payin, answer, heard, heard.table, now)
  }
  const { report, accountIds } = heard
  const odd = (kind: string, detail: string) =>
    anomaly(heard, 'CALLBACK', kind, withWhatItSays(detail, report), report.exchange)
  if (!payin) return odd('unknown-order', 'a signed report came for a payin that was never asked for')
  if (payin.accountId !== null && !accountIds.includes(payin.accountId)) {
    const from = accountIds.join(', ')
    return odd('other-account', `account ${from} reports a payin that was asked for at ${payin.accountId}`)
  }
  const ours = accountIds.map((accountId) => mchIds.get(accountId))
  if (report.mchId !== null && !ours.includes(report.mchId)) {
    return odd('merchant-mismatch', `the gateway says ${report.mchId}, ours is ${ours.join(', ')}`)
  }
  return settle(payin, report, 'CALLBACK', table, now)
}

function outcome(decision: PayinDecision): string {
  if ('nothing' in decision) return 'absorbed'
  const moved =
    'change' in decision && decision.change.after.version > decision.change.before.version
      ? decision.change.after.state
      : null
  if ('anomaly' in decision) return moved !== null && isEnd(moved) ? moved : 'anomaly'
  return moved ?? 'absorbed'
}
