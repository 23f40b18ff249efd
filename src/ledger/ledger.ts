import type { Fault } from '../payout/fault.ts'
import type { Change, Decision, Payout } from '../payout/payout.ts'
import type { Ids } from '../platform/ids.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Connection, Database, Transaction } from '../platform/postgres.ts'
import { storeAnomalies } from './anomalies.ts'
import { json } from './json.ts'
import { type Encode, messagesAbout, type OutboxRow } from './messages.ts'
import { tellOnce } from './repeats.ts'
import { lockById, lockByOrder } from './sql/lock.ts'
import { recoveringMerchants } from './sql/recovering.ts'
import { appendOutbox, countRepeatedOfPayouts, tellHistory, updatePayouts } from './sql/store.ts'
import type { Topics } from './topics.ts'

/** The few verbs through which every stage changes payouts. */
export type Ledger = {
  db: Database
  topics: Topics
  encode: Encode
  ids: Ids
}

/** Names one payout by what the gateway knows it as. */
export type OrderKey = { merchantId: string; mchOrderNo: string }
export type PayoutKey = { merchantId: string; payoutId: string }

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

/** History and outbox of payouts that were just inserted, at version 1. */
export async function storeArrivals(
  tx: Transaction,
  ledger: Ledger,
  arrivals: readonly { payout: Payout; faults: Fault[] }[],
): Promise<void> {
  const transitions = arrivals.map(({ payout, faults }) => ({
    payout,
    from: null,
    source: faults.length > 0 ? ('VALIDATION' as const) : ('COMMAND' as const),
    faults,
    at: tx.now,
  }))
  await tx.run(tellHistory, {
    merchantIds: transitions.map(({ payout }) => payout.merchantId),
    payoutIds: transitions.map(({ payout }) => payout.payoutId),
    versions: transitions.map(({ payout }) => payout.version),
    fromStates: transitions.map(() => null),
    toStates: transitions.map(({ payout }) => payout.state),
    reasons: transitions.map(({ payout }) => payout.reason),
    sources: transitions.map(({ source }) => source),
    exchanges: transitions.map(() => null),
  })
  await storeOutbox(
    tx,
    transitions.flatMap((each) => messagesAbout(each, ledger.topics, ledger.encode)),
  )
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
  await storePayouts(tx, [...last.values()])
  await storeHistory(tx, changes)
  await storeOutbox(tx, [
    ...changes
      .filter(isTransition)
      .flatMap(({ before, after, source }) =>
        messagesAbout(
          { payout: after, from: before.state, source, faults: [], at: tx.now },
          ledger.topics,
          ledger.encode,
        ),
      ),
    ...(await storeAnomalies(tx, ledger, anomalies)),
  ])
}

const isTransition = ({ before, after }: Change): boolean => after.version > before.version

/** Stores locked payouts as they are now, each once, and tells nobody: for what was told before. */
export async function storePayouts(tx: Transaction, payouts: readonly Payout[]): Promise<void> {
  if (payouts.length === 0) return
  await tx.run(updatePayouts, {
    merchantIds: payouts.map((payout) => payout.merchantId),
    payoutIds: payouts.map((payout) => payout.payoutId),
    states: payouts.map((payout) => payout.state),
    reasons: payouts.map((payout) => payout.reason),
    versions: payouts.map((payout) => payout.version),
    attempts: payouts.map((payout) => payout.attempt),
    accountIds: payouts.map((payout) => payout.accountId),
    doubteds: payouts.map((payout) => payout.doubted),
    turnedAways: payouts.map((payout) => payout.turnedAway),
    refusals: payouts.map((payout) => payout.refusal),
    agentpayOrderIds: payouts.map((payout) => payout.agentpayOrderId),
    fees: payouts.map((payout) => payout.fee),
    utrs: payouts.map((payout) => payout.utr),
    deadlines: payouts.map((payout) => payout.deadline),
    unknownSinces: payouts.map((payout) => payout.unknownSince),
    queries: payouts.map((payout) => payout.queries),
    absences: payouts.map((payout) => payout.absences),
    askedAts: payouts.map((payout) => payout.askedAt),
    readies: payouts.map((payout) => payout.ready),
    dueAts: payouts.map((payout) => payout.dueAt),
  })
}

function storeHistory(tx: Transaction, changes: readonly Change[]): Promise<void> {
  const told = changes.filter((change) => isTransition(change) || change.exchange !== null)
  return tellOnce(told, {
    unmovedBy: (change) => (isTransition(change) ? null : unmovedBy(change)),
    count: (repeated) => tx.run(countRepeatedOfPayouts, repeated),
    tell: (changes) => insertHistory(tx, changes),
  })
}

const unmovedBy = ({ after, source, exchange }: Change) => ({
  merchantId: after.merchantId,
  id: after.payoutId,
  toState: after.state,
  source,
  exchange: json(exchange) as string,
})

async function insertHistory(tx: Transaction, changes: readonly Change[]): Promise<void> {
  await tx.run(tellHistory, {
    merchantIds: changes.map(({ after }) => after.merchantId),
    payoutIds: changes.map(({ after }) => after.payoutId),
    versions: changes.map((change) => (isTransition(change) ? change.after.version : null)),
    fromStates: changes.map(({ before }) => before.state),
    toStates: changes.map(({ after }) => after.state),
    reasons: changes.map(({ after }) => after.reason),
    sources: changes.map(({ source }) => source),
    exchanges: changes.map(({ exchange }) => json(exchange)),
  })
}

/** Hands messages to the relay, in this order within each key. */
export async function storeOutbox(tx: Transaction, rows: readonly OutboxRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx.run(appendOutbox, {
    shards: rows.map(({ shard }) => shard),
    topics: rows.map(({ topic }) => topic),
    keys: rows.map(({ key }) => key),
    eventIds: rows.map(({ eventId }) => eventId),
    types: rows.map(({ type }) => type),
    values: rows.map(({ value }) => value),
    headers: rows.map(({ headers }) => json(headers)),
    merchantIds: rows.map(({ about }) => about?.merchantId ?? null),
    payoutIds: rows.map(({ about }) => about?.payoutId ?? null),
  })
}
