import type { Fault } from '../domain/fault.ts'
import type { PayoutKey } from '../domain/identifiers.ts'
import type { Instant } from '../domain/instant.ts'
import type { Change, Decision, Payout } from '../domain/payout/payout.ts'
import { endedUnpaid, type State } from '../domain/payout/states.ts'
import { json } from '../messages/json.ts'
import { type Encode, messagesAbout, type OutboxRow } from '../messages/messages.ts'
import type { Topics } from '../messages/topics.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Connection, Database, Transaction } from '../platform/postgres/postgres.ts'
import { shareOf } from '../platform/postgres/shares.ts'
import { storeAnomalies } from './anomalies.ts'
import { BEYOND_UNMOVED, completes, recordOnce } from './evidence/repeats.ts'
import { named, utrsOfTwo } from './evidence/utr-of-two.ts'
import { lockFences, recoveringMerchants } from './sql/fenced-merchants.ts'
import { lockById, lockByOrder } from './sql/lock.ts'
import { keepSaidOtherwise } from './sql/said-otherwise.ts'
import {
  appendOutbox,
  countRepeatedOfPayouts,
  countUnmovedOfPayouts,
  type DatedPayout,
  type HistoryRow,
  insertHistory,
  storeTransitions,
  updatePayouts,
} from './sql/store.ts'

/** What every stage needs to change payouts. */
export type Ledger = {
  db: Database
  topics: Topics
  encode: Encode
}

/** The same ledger for work that may wait for locks of one merchant's rows (see shareOf). */
export const ledgerOf = (ledger: Ledger, merchantId: string): Ledger => ({
  ...ledger,
  db: shareOf(ledger.db, merchantId),
})

/** Names one payout as the gateway knows it. */
export type OrderKey = { merchantId: string; mchOrderNo: string }

/** The key of a payout in a Map. */
export const keyOf = ({ merchantId, payoutId }: PayoutKey): string => mapKey(merchantId, payoutId)

/** Locks payouts in primary-key order. The result lacks unknown keys. */
export async function lockPayouts(tx: Transaction, keys: readonly PayoutKey[]): Promise<Payout[]> {
  if (keys.length === 0) return []
  const unique = new Map(keys.map((key) => [keyOf(key), key]))
  return tx.run(lockById, { payouts: [...unique.values()] })
}

/** The same by order number. */
export async function lockOrders(tx: Transaction, keys: readonly OrderKey[]): Promise<Payout[]> {
  if (keys.length === 0) return []
  const unique = new Map(keys.map((key) => [mapKey(key.merchantId, key.mchOrderNo), key]))
  return tx.run(lockByOrder, { orders: [...unique.values()] })
}

/** The fenced merchants. Their payouts without an attempt may have been sent all the same. */
export async function fencedMerchants(connection: Connection): Promise<ReadonlySet<string>> {
  return new Set((await connection.run(recoveringMerchants, {})).map(({ merchantId }) => merchantId))
}

/**
 * Those of these merchants that are fenced. They stay so until this transaction ends: no recovery ends meanwhile and leaves
 * behind a payout that is to be cancelled with it. Call it before you lock payouts.
 */
export async function fencedBeforeCancels(
  tx: Transaction,
  merchantIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const fences = await tx.run(lockFences, { merchantIds: [...merchantIds] })
  return new Set(fences.flatMap(({ merchantId, fenced }) => (fenced ? [merchantId] : [])))
}

/** Writes history and outbox of payouts just inserted at version 1. About those at version 0 payoutd publishes nothing yet. */
export async function storeArrivals(
  tx: Transaction,
  ledger: Ledger,
  arrivals: readonly { payout: Payout; faults: Fault[] }[],
): Promise<void> {
  const published = arrivals.filter(({ payout }) => payout.version > 0)
  const transitions = published.map(({ payout, faults }) => ({
    payout,
    from: null,
    source: faults.length > 0 ? ('VALIDATION' as const) : ('COMMAND' as const),
    faults,
    at: tx.now,
  }))
  await tx.run(storeTransitions, {
    payouts: [],
    history: transitions.map(({ payout, source, at }) => ({
      ...{ ...payout, fromState: null, toState: payout.state, source, exchange: null, publishedAt: at },
    })),
    messages: transitions
      .flatMap((each) => messagesAbout(each, ledger.topics, ledger.encode))
      .map(messageRow),
  })
}

/**
 * Stores decisions about locked payouts: state, history and outbox together. Decisions about one payout must come in the
 * order in which they were made, each based on the result of the one before.
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
  const history = await needingEntry(tx, changes)
  const withUtr = named(changes, ({ payoutId, orderNo }) => ({ id: payoutId, orderNo }))
  anomalies.push(...(await utrsOfTwo(tx, 'payout', withUtr)))
  const shown = await storeAnomalies(tx, ledger, anomalies)
  const messages = [
    ...changes.filter(isTransition).flatMap(({ before, after, source, faults = [] }) =>
      messagesAbout(
        {
          payout: after,
          from: fromState(before),
          source,
          faults: [...faults],
          at: changedAt(before, tx.now),
        },
        ledger.topics,
        ledger.encode,
      ),
    ),
    ...shown.messages,
  ]
  if (last.size + history.length + messages.length > 0)
    await tx.run(storeTransitions, {
      payouts: [...last.values()].map((payout) => changed(payout, tx.now)),
      history: history.map((each) => historyRow(each, tx.now)),
      messages: messages.map(messageRow),
    })
  const isSaidSince = saidSince(decisions)
  await storeSaidOtherwise(tx, shown.otherwise.filter(isSaidSince))
}

/** Whether these decisions have an anomaly about a payout after its last transition. */
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

/** Records on those of these payouts that ended unpaid whether, by their anomalies, the gateway has reported otherwise. */
export async function storeSaidOtherwise(tx: Transaction, keys: readonly PayoutKey[]): Promise<void> {
  const locked = await lockPayouts(tx, keys)
  const ended = locked.filter(({ state }) => endedUnpaid(state))
  if (ended.length === 0) return
  await tx.run(keepSaidOtherwise, { payouts: ended })
}

/**
 * When a locked payout changes, in a transaction that began at `now`. Another one may have begun later and changed it before, so
 * the times of its transitions are in their order, which tells what came after what.
 */
export const changedAt = ({ lastChangeAt }: Pick<Payout, 'lastChangeAt'>, now: Instant): Instant =>
  Math.max(now, lastChangeAt ?? now)

const changed = (payout: Payout, now: Instant): DatedPayout => ({
  ...payout,
  lastChangeAt: changedAt(payout, now),
})

/** Null: payoutd has published nothing about it before. */
const fromState = ({ version, state }: Payout): State | null => (version === 0 ? null : state)

const isTransition = ({ before, after }: Change): boolean => after.version > before.version

/** Stores locked payouts as they are now, each once, and publishes nothing: for changes that were published before. */
export async function storePayouts(tx: Transaction, payouts: readonly Payout[]): Promise<void> {
  if (payouts.length === 0) return
  await tx.run(updatePayouts, { payouts: payouts.map((payout) => changed(payout, tx.now)) })
}

/**
 * Returns the changes that still need a history entry: all with a transition or evidence. If some evidence moved nothing, and
 * so may be stored already, writes the entries itself and returns none.
 */
async function needingEntry(tx: Transaction, changes: readonly Change[]): Promise<Change[]> {
  const entries = changes.filter((change) => isTransition(change) || change.exchange !== null)
  if (entries.every(isTransition)) return entries
  await recordOnce(entries, {
    unmovedBy: (change) => (isTransition(change) ? null : unmovedBy(change)),
    beyond: (change) => ({ ...change, before: change.after, exchange: BEYOND_UNMOVED }),
    count: (repeated) => tx.run(countRepeatedOfPayouts, { repeated }),
    kept: (about, most) => tx.run(countUnmovedOfPayouts, { about, most }),
    insert: async (fresh) => {
      await tx.run(insertHistory, { history: fresh.map((each) => historyRow(each, tx.now)) })
    },
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

const historyRow = (each: Change, now: Instant): HistoryRow => ({
  merchantId: each.after.merchantId,
  payoutId: each.after.payoutId,
  version: isTransition(each) ? each.after.version : null,
  fromState: fromState(each.before),
  toState: each.after.state,
  reason: each.after.reason,
  source: each.source,
  exchange: json(each.exchange),
  publishedAt: isTransition(each) ? changedAt(each.before, now) : null,
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
