import type { Fault } from '../domain/fault.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import type { Change, Decision, Payout } from '../domain/payout/payout.ts'
import type { State } from '../domain/payout/states.ts'
import { json } from '../messages/json.ts'
import { type Encode, messagesAbout, type OutboxRow } from '../messages/messages.ts'
import type { Topics } from '../messages/topics.ts'
import type { Ids } from '../platform/ids.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Connection, Database, Transaction } from '../platform/postgres/postgres.ts'
import { shareOf } from '../platform/postgres/shares.ts'
import { storeAnomalies } from './anomalies.ts'
import { BEYOND_UNMOVED, completes, tellOnce } from './evidence/repeats.ts'
import { named, utrsOfTwo } from './evidence/utr-of-two.ts'
import { lockFences, recoveringMerchants } from './sql/fenced-merchants.ts'
import { lockById, lockByOrder } from './sql/lock.ts'
import { keepSaidOtherwise } from './sql/said-otherwise.ts'
import {
  appendOutbox,
  countRepeatedOfPayouts,
  countUnmovedOfPayouts,
  type HistoryRow,
  insertHistory,
  storeTransitions,
  updatePayouts,
} from './sql/store.ts'

/** The few verbs through which every stage changes payouts. */
export type Ledger = {
  db: Database
  topics: Topics
  encode: Encode
  ids: Ids
}

/** The same for what may wait for locks of one merchant's rows (see shareOf). */
export const ledgerOf = (ledger: Ledger, merchantId: string): Ledger => ({
  ...ledger,
  db: shareOf(ledger.db, merchantId),
})

/** Names one payout by what the gateway knows it as. */
export type OrderKey = { merchantId: string; mchOrderNo: string }

/** To find a payout in memory by. */
export const keyOf = ({ merchantId, payoutId }: PayoutKey): string => mapKey(merchantId, payoutId)

/** Locks payouts in primary-key order. Keys nobody knows are missing from the answer. */
export async function lockPayouts(tx: Transaction, keys: readonly PayoutKey[]): Promise<Payout[]> {
  if (keys.length === 0) return []
  const unique = new Map(keys.map((key) => [keyOf(key), key]))
  return tx.run(lockById, {
    merchantIds: [...unique.values()].map(({ merchantId }) => merchantId),
    payoutIds: [...unique.values()].map(({ payoutId }) => payoutId),
  })
}

/** The same by order number. */
export async function lockOrders(tx: Transaction, keys: readonly OrderKey[]): Promise<Payout[]> {
  if (keys.length === 0) return []
  const unique = new Map(keys.map((key) => [mapKey(key.merchantId, key.mchOrderNo), key]))
  return tx.run(lockByOrder, {
    merchantIds: [...unique.values()].map(({ merchantId }) => merchantId),
    orderNos: [...unique.values()].map(({ mchOrderNo }) => mchOrderNo),
  })
}

/** The merchants that are fenced: of a payout without an attempt nobody can say yet that it was never sent. */
export async function fencedMerchants(connection: Connection): Promise<ReadonlySet<string>> {
  return new Set((await connection.run(recoveringMerchants, {})).map(({ merchantId }) => merchantId))
}

/**
 * Those of these merchants that are fenced, which holds until this transaction ends: no recovery ends meanwhile, and
 * leaves behind what is to be cancelled with it. To be called before payouts are locked.
 */
export async function fencedBeforeCancels(
  tx: Transaction,
  merchantIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const fences = await tx.run(lockFences, { merchantIds: [...merchantIds] })
  return new Set(fences.flatMap(({ merchantId, fenced }) => (fenced ? [merchantId] : [])))
}

/** History and outbox of payouts that were just inserted, at version 1; of those at version 0 nobody is told yet. */
export async function storeArrivals(
  tx: Transaction,
  ledger: Ledger,
  arrivals: readonly { payout: Payout; faults: Fault[] }[],
): Promise<void> {
  const told = arrivals.filter(({ payout }) => payout.version > 0)
  const transitions = told.map(({ payout, faults }) => ({
    payout,
    from: null,
    source: faults.length > 0 ? ('VALIDATION' as const) : ('COMMAND' as const),
    faults,
    at: tx.now,
  }))
  await tx.run(storeTransitions, {
    payouts: [],
    history: transitions.map(({ payout, source }) => ({
      ...{ ...payout, fromState: null, toState: payout.state, source, exchange: null },
    })),
    messages: transitions
      .flatMap((each) => messagesAbout(each, ledger.topics, ledger.encode))
      .map(messageRow),
  })
}

/**
 * Stores decisions about locked payouts: state, history and outbox together. Decisions about one payout
 * must stand in the order in which they were made, each on the outcome of the one before.
 */
export async function storeDecisions(
  tx: Transaction,
  ledger: Ledger,
  decisions: readonly Decision[],
): Promise<void> {
  const changes = decisions.flatMap((decision) => ('change' in decision ? [decision.change] : []))
  const anomalies = decisions.flatMap((decision) => ('anomaly' in decision ? [decision.anomaly] : []))
  const last = new Map<string, Payout>()
  for (const { before, after } of changes) {
    if (after !== before) last.set(keyOf(after), after)
  }
  const history = await untold(tx, changes)
  const withUtr = named(changes, ({ payoutId, orderNo }) => ({ id: payoutId, orderNo }))
  anomalies.push(...(await utrsOfTwo(tx, 'payout', withUtr)))
  const shown = await storeAnomalies(tx, ledger, anomalies)
  const messages = [
    ...changes
      .filter(isTransition)
      .flatMap(({ before, after, source, faults = [] }) =>
        messagesAbout(
          { payout: after, from: fromState(before), source, faults: [...faults], at: tx.now },
          ledger.topics,
          ledger.encode,
        ),
      ),
    ...shown.messages,
  ]
  if (last.size + history.length + messages.length > 0)
    await tx.run(storeTransitions, {
      payouts: [...last.values()],
      history: history.map(historyRow),
      messages: messages.map(messageRow),
    })
  const isSaidSince = saidSince(decisions)
  await storeSaidOtherwise(tx, shown.otherwise.filter(isSaidSince))
}

/** Whether there is an anomaly about a payout that was said in the state in which these decisions leave it. */
function saidSince(decisions: readonly Decision[]): (key: PayoutKey) => boolean {
  const said = new Set<string>()
  for (const decision of decisions) {
    if ('change' in decision && isTransition(decision.change)) said.delete(keyOf(decision.change.after))
    if (!('anomaly' in decision)) continue
    const { merchantId, payoutId } = decision.anomaly
    if (payoutId !== null) said.add(keyOf({ merchantId, payoutId }))
  }
  return (key) => said.has(keyOf(key))
}

/** Has those of these payouts that ended unpaid keep that the gateway says otherwise, as the anomalies about them tell. */
export async function storeSaidOtherwise(tx: Transaction, keys: readonly PayoutKey[]): Promise<void> {
  const locked = await lockPayouts(tx, keys)
  const ended = locked.filter(({ state }) => state === 'failed' || state === 'cancelled')
  if (ended.length === 0) return
  await tx.run(keepSaidOtherwise, { payouts: ended })
}

/** Null: nobody was told of it before. */
const fromState = ({ version, state }: Payout): State | null => (version === 0 ? null : state)

const isTransition = ({ before, after }: Change): boolean => after.version > before.version

/** Stores locked payouts as they are now, each once, and tells nobody: for what was told before. */
export async function storePayouts(tx: Transaction, payouts: readonly Payout[]): Promise<void> {
  if (payouts.length > 0) await tx.run(updatePayouts, { payouts })
}

/** Returns what is still to be told: all, unless evidence that moved nothing is among it, of which the same may be told already. */
async function untold(tx: Transaction, changes: readonly Change[]): Promise<Change[]> {
  const said = changes.filter((change) => isTransition(change) || change.exchange !== null)
  if (said.every(isTransition)) return said
  await tellOnce(said, {
    unmovedBy: (change) => (isTransition(change) ? null : unmovedBy(change)),
    beyond: (change) => ({ ...change, before: change.after, exchange: BEYOND_UNMOVED }),
    count: (repeated) => tx.run(countRepeatedOfPayouts, repeated),
    kept: (room) => tx.run(countUnmovedOfPayouts, room),
    tell: async (fresh) => void (await tx.run(insertHistory, { history: fresh.map(historyRow) })),
  })
  return []
}

const unmovedBy = ({ before, after, source, exchange }: Change) => ({
  merchantId: after.merchantId,
  id: after.payoutId,
  toState: after.state,
  source,
  exchange: json(exchange) as string,
  stays:
    source === 'OPERATOR' || completes(before, after, ['agentpayOrderId', 'fee', 'utr', 'cancelRequest']),
})

const historyRow = (each: Change): HistoryRow => ({
  merchantId: each.after.merchantId,
  payoutId: each.after.payoutId,
  version: isTransition(each) ? each.after.version : null,
  fromState: fromState(each.before),
  toState: each.after.state,
  reason: each.after.reason,
  source: each.source,
  exchange: json(each.exchange),
})

/** Hands messages to the relay, in this order within each key. */
export async function storeOutbox(tx: Transaction, rows: readonly OutboxRow[]): Promise<void> {
  if (rows.length > 0) await tx.run(appendOutbox, { messages: rows.map(messageRow) })
}

const messageRow = ({ about, headers, ...row }: OutboxRow) => ({
  ...row,
  headers: json(headers),
  merchantId: about?.merchantId ?? null,
  payoutId: about?.payoutId ?? null,
})
