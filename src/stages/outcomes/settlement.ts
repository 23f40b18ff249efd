import type { QueryAnswer } from '../../domain/answers.ts'
import { type OrderReport, UNKEPT } from '../../domain/evidence.ts'
import type { Instant } from '../../domain/instant.ts'
import type { Judgement } from '../../domain/judgement.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import type { Asked } from '../../domain/payout/record-query.ts'
import { reportedThere, withWhatItSays } from '../../domain/payout/settle.ts'
import { isEnd } from '../../domain/payout/states.ts'
import {
  cannotBeThere,
  inconclusive,
  isAskedAbout,
  nextQueryAt,
  type Timetable,
} from '../../domain/payout/transition.ts'
import { NEVER_SENT } from '../../domain/restore/never-sent.ts'
import { askAboutOrders } from '../../ledger/callbacks/sql/lost-callbacks.ts'
import { storeEvidence } from '../../ledger/evidence/store-evidence.ts'
import { type Ledger, lockOrders } from '../../ledger/ledger.ts'
import { settingsOf } from '../../ledger/settings-of.ts'
import type { Logger } from '../../platform/log.ts'
import { mapKey } from '../../platform/map-key.ts'
import type { Counter } from '../../platform/metrics.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { cutText } from '../../text/text.ts'

/** What a callback or a query said about one order of one merchant; times by the database's clock. */
export type Heard = {
  merchantId: string
  mchOrderNo: string
} /** `accountIds`: of the merchant's gateway accounts, those that signed it. */ & (
  | { source: 'CALLBACK'; report: OrderReport; accountIds: readonly string[] }
  /**
   * `accountId`: whose gateway was asked; `table`: by whose dialect the answer is judged; `settingsHash`: of the merchant's
   * settings that this is from, of which something is concluded only while they are in force.
   */
  | ({
      source: 'QUERY'
      answer: QueryAnswer
      accountId: string
      table: Timetable
      settingsHash: string
    } & Asked)
)

export type SettlementDeps = {
  ledger: Ledger
  judge: Judgement
  /** By merchant, of the account in its settings. */
  tables: ReadonlyMap<string, Timetable>
  counted: Counter<'source' | 'outcome'>
  log: Logger
}

/**
 * The one door through which the gateway's word changes a payout: load, decide, store, in one transaction.
 * What is heard about one payout is folded in order. Resolves once it is stored; one result per item.
 */
export async function settleHeard(heard: readonly Heard[], deps: SettlementDeps): Promise<undefined[]> {
  const load = async (tx: Transaction) => {
    const locked = await lockOrders(tx, heard)
    const inForce = await settingsOf(tx, heard)
    return (fenced: ReadonlySet<string>) => {
      const payouts = new Map(
        locked.map((payout) => [mapKey(payout.merchantId, payout.orderNo ?? ''), payout]),
      )
      return heard.map((each) => {
        const key = mapKey(each.merchantId, each.mchOrderNo)
        const table = tableFor(each, deps.tables, inForce)
        const decided = decide(each, payouts.get(key), deps.judge, table, tx.now)
        const isFenced = fenced.has(each.merchantId)
        const decision = isFenced ? deps.judge.whileFenced(decided, table, tx.now) : decided
        if ('change' in decision) payouts.set(key, decision.change.after)
        return decision
      })
    }
  }
  const decisions = await storeEvidence(deps, 'settle payouts', load, {
    isFound: (i) => isFound(heard[i] as Heard),
    alsoStore: (tx, decided) => askInDoubt(tx, heard, decided, deps.tables),
  })
  decisions.forEach((decision, i) => {
    deps.counted.inc({ source: (heard[i] as Heard).source, outcome: outcome(decision) })
  })
  return heard.map(() => undefined)
}

/** Of a payout that nobody asks about, such as one that has ended, a callback in doubt would tell nobody anything. */
async function askInDoubt(
  tx: Transaction,
  heard: readonly Heard[],
  decisions: readonly Decision[],
  tables: SettlementDeps['tables'],
): Promise<void> {
  const unasked = heard.filter((each, i) => {
    const decision = decisions[i] as Decision
    return reportIn(each)?.doubt && 'change' in decision && !isAskedAbout(decision.change.after)
  })
  if (unasked.length === 0) return
  await tx.run(askAboutOrders, {
    kind: 'payout',
    merchantIds: unasked.map(({ merchantId }) => merchantId),
    orderNos: unasked.map(({ mchOrderNo }) => mchOrderNo),
    waitsMs: unasked.map(({ merchantId }) => nextQueryAt(0, tables.get(merchantId) as Timetable, 0)),
  })
}

function tableFor(
  heard: Heard,
  tables: SettlementDeps['tables'],
  inForce: ReadonlyMap<string, string>,
): Timetable {
  const { merchantId } = heard
  if (heard.source === 'CALLBACK') return tables.get(merchantId) as Timetable
  return heard.settingsHash === inForce.get(merchantId) ? heard.table : inconclusive(heard.table)
}

/** The same evidence without what is only kept to be read. */
export function bare(heard: Heard): Heard {
  if (heard.source === 'CALLBACK') return { ...heard, report: bareReport(heard.report) }
  const { answer } = heard
  return answer.kind === 'found'
    ? { ...heard, answer: { ...answer, report: bareReport(answer.report) } }
    : { ...heard, answer: { ...answer, exchange: UNKEPT } }
}

const bareReport = (report: OrderReport): OrderReport => ({ ...report, errorMessage: null, exchange: UNKEPT })

function decide(
  heard: Heard,
  known: Payout | undefined,
  judge: Judgement,
  table: Timetable,
  now: Instant,
): Decision {
  if (!known) return unknownOrder(heard)
  const from = heard.source === 'CALLBACK' ? heard.accountIds : [heard.accountId]
  if (known.accountId !== null && !from.includes(known.accountId)) return otherAccount(known, from, heard)
  // Whoever reports an order that no attempt is known to be alive of has it.
  const payout = known.accountId === null ? { ...known, accountId: from[0] ?? null } : known
  const report = reportIn(heard)
  if (report && cannotBeThere(known)) return reportedThere(payout, report, heard.source)
  if (heard.source === 'CALLBACK') return judge.settle(payout, heard.report, 'CALLBACK', table, now)
  const { answer } = heard
  switch (answer.kind) {
    case 'found':
      return judge.settle(payout, answer.report, 'QUERY', table, now, heard.askedAt)
    case 'not-found':
      return judge.recordAbsence(known, answer.exchange, heard, table, now)
    case 'unknown':
      return judge.recordNoAnswer(known, answer.exchange, table, now)
  }
}

/** Only the account that an attempt was sent to can say what became of it. */
function otherAccount(
  { merchantId, payoutId, orderNo, accountId }: Payout,
  from: readonly string[],
  heard: Heard,
): Decision {
  const report = reportIn(heard)
  // The query was under way while the payout went on at another account.
  if (!report) return { nothing: true }
  return {
    anomaly: {
      merchantId,
      payoutId,
      orderNo,
      kind: 'other-account',
      detail: withWhatItSays(
        `gateway account ${from.join(', ')} reports an order that was sent to account ${accountId}`,
        report,
      ),
      source: heard.source,
      exchange: report.exchange,
    },
  }
}

const isFound = (heard: Heard): boolean => heard.source === 'QUERY' && heard.answer.kind === 'found'

function reportIn(heard: Heard): OrderReport | null {
  if (heard.source === 'CALLBACK') return heard.report
  return heard.answer.kind === 'found' ? heard.answer.report : null
}

function unknownOrder(heard: Heard): Decision {
  const report = reportIn(heard)
  const { kind, detail } = ofUnknownOrder(heard)
  return {
    anomaly: {
      merchantId: heard.merchantId,
      payoutId: null,
      orderNo: cutText(heard.mchOrderNo, 64),
      kind,
      detail: report ? withWhatItSays(detail, report) : detail,
      source: heard.source,
      exchange: report?.exchange ?? null,
    },
  }
}

/** Anybody who may use the merchant's account may make orders; one that payoutd asks about was in the ledger. */
const ofUnknownOrder = ({ source }: Heard): { kind: string; detail: string } =>
  source === 'CALLBACK'
    ? { kind: 'unknown-order', detail: 'a signed report came for an order that was never sent from here' }
    : { kind: NEVER_SENT, detail: 'an order that payoutd asked the gateway about is gone from the ledger' }

function outcome(decision: Decision): string {
  if ('nothing' in decision) return 'absorbed'
  const moved =
    'change' in decision && decision.change.after.version > decision.change.before.version
      ? decision.change.after.state
      : null
  if ('anomaly' in decision) return moved !== null && isEnd(moved) ? moved : 'anomaly'
  return moved ?? 'absorbed'
}
