import type { Payin, PayinChange, PayinDecision } from '../domain/payin/payin.ts'
import { isEnd } from '../domain/payin/states.ts'
import type { Anomaly } from '../domain/payout/payout.ts'
import { BEYOND_UNMOVED, completes, recordOnce } from '../ledger/evidence/repeats.ts'
import { named, utrsOfTwo } from '../ledger/evidence/utr-of-two.ts'
import { type Ledger, storeDecisions, storeOutbox } from '../ledger/ledger.ts'
import { countRepeatedOfPayins, countUnmovedOfPayins } from '../ledger/sql/store.ts'
import { json } from '../messages/json.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { cutText } from '../text/text.ts'
import { payinResult } from './result.ts'
import { lockById } from './sql/lock.ts'
import { insertPayinHistory, updatePayins } from './sql/store.ts'
import { wakeDispatch } from './sql/wake.ts'

export type PayinKey = { merchantId: string; payinId: string }

export const keyOf = ({ merchantId, payinId }: PayinKey): string => mapKey(merchantId, payinId)

/** Locks payins in primary-key order. The result leaves out unknown keys. */
export async function lockPayins(tx: Transaction, keys: readonly PayinKey[]): Promise<Payin[]> {
  const unique = new Map(keys.map((key) => [keyOf(key), key]))
  return tx.run(lockById, { payins: [...unique.values()] })
}

/** The first entry in the history of a payin that was just inserted. */
export async function storeArrival(tx: Transaction, payin: Payin): Promise<void> {
  await insertHistory(tx, [{ version: payin.version, from: null, payin, source: 'COMMAND', exchange: null }])
}

/**
 * Stores decisions about locked payins: state, history and outbox together. It wakes dispatch if money came in that payouts wait
 * for. Decisions about one payin must be in the order in which they were made, each based on the one before.
 */
export async function storePayins(
  tx: Transaction,
  ledger: Ledger,
  decisions: readonly PayinDecision[],
): Promise<void> {
  const changes = decisions.flatMap((decision) => ('change' in decision ? [decision.change] : []))
  await update(tx, changes)
  const recorded = changes.filter((each) => isTransition(each) || each.exchange !== null)
  const entries = recorded.map((each) => ({
    version: isTransition(each) ? each.after.version : null,
    from: each.before.state,
    payin: each.after,
    source: each.source,
    exchange: each.exchange,
    stays: completes(each.before, each.after, ['payOrderId', 'paidAt', 'utr']),
  }))
  await recordOnce(entries, {
    unmovedBy: (entry) => (entry.version === null ? unmovedBy(entry) : null),
    beyond: (entry) => ({ ...entry, exchange: BEYOND_UNMOVED }),
    count: (repeated) => tx.run(countRepeatedOfPayins, { repeated }),
    kept: (about, most) => tx.run(countUnmovedOfPayins, { about, most }),
    insert: (entries) => insertHistory(tx, entries),
  })
  const ends = changes.filter((each) => isTransition(each) && isEnd(each.after.state))
  await storeOutbox(
    tx,
    ends.map((end) => payinResult(end, tx.now, ledger)),
  )
  const anomalies = decisions.flatMap((decision) =>
    'anomaly' in decision ? [{ anomaly: decision.anomaly }] : [],
  )
  await storeDecisions(tx, ledger, [...anomalies, ...(await payinsOfOneUtr(tx, changes))])
  const paid = ends.filter(({ after }) => after.state === 'paid')
  if (paid.length > 0) await tx.run(wakeDispatch, { merchantIds: paid.map(({ after }) => after.merchantId) })
}

/** The anomalies of payins that now share a UTR with another one. */
async function payinsOfOneUtr(
  tx: Transaction,
  changes: readonly PayinChange[],
): Promise<{ anomaly: Anomaly }[]> {
  const ofTwo = await utrsOfTwo(
    tx,
    'payin',
    named(changes, ({ payinId }) => ({ id: payinId, orderNo: cutText(payinId, 64) })),
  )
  return ofTwo.map((anomaly) => ({ anomaly }))
}

/** Stores a change of a locked payin without publishing it, because its end was published before. */
export async function storePublished(tx: Transaction, change: PayinChange): Promise<void> {
  const { before, after, source, exchange } = change
  await update(tx, [change])
  await insertHistory(tx, [{ version: after.version, from: before.state, payin: after, source, exchange }])
}

const isTransition = ({ before, after }: PayinChange): boolean => after.version > before.version

async function update(tx: Transaction, changes: readonly PayinChange[]): Promise<void> {
  const last = new Map<string, Payin>()
  for (const { before, after } of changes) if (after !== before) last.set(keyOf(after), after)
  const payins = [...last.values()]
  if (payins.length === 0) return
  await tx.run(updatePayins, {
    payins: payins.map((payin) => ({ ...payin, checkout: json(payin.checkout) })),
  })
}

type Entry = Pick<PayinChange, 'source' | 'exchange'> & {
  version: number | null
  from: string | null
  payin: Payin
}

const unmovedBy = ({ payin, source, exchange, stays }: Entry & { stays: boolean }) => ({
  merchantId: payin.merchantId,
  id: payin.payinId,
  toState: payin.state,
  source,
  exchange: json(exchange) as string,
  stays,
})

async function insertHistory(tx: Transaction, entries: readonly Entry[]): Promise<void> {
  await tx.run(insertPayinHistory, {
    history: entries.map(({ version, from: fromState, payin, source, exchange }) => ({
      ...{ ...payin, version, fromState, toState: payin.state, source, exchange: json(exchange) },
    })),
  })
}
