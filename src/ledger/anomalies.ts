import { anomalyId } from '../domain/identifiers.ts'
import type { Anomaly } from '../domain/payout/payout.ts'
import { json } from '../messages/json.ts'
import { type Encode, messageOf, type OutboxRow } from '../messages/messages.ts'
import type { Topics } from '../messages/topics.ts'
import { mapKey } from '../platform/map-key.ts'
import type { Transaction } from '../platform/postgres/postgres.ts'
import { anomaliesBeside, keepAnomalies } from './sql/anomalies.ts'

/**
 * How many different unacknowledged anomalies of one kind payoutd keeps about one payout, or one order. A source that reports
 * something else each time fills no table.
 */
export const MOST_OPEN = 20

/** The detail of the anomaly that counts those beyond MOST_OPEN. */
export const BEYOND = `${MOST_OPEN} anomalies of this kind wait to be acknowledged, so payoutd only counts further ones here and keeps the latest of them`

type ShownAnomaly = { id: string; anomaly: Anomaly; times: number }

/**
 * Stores each anomaly once, in its latest form, however often it shows. Returns the messages about new anomalies, and the
 * payouts about which the gateway reports anything but that they failed.
 */
export async function storeAnomalies(
  tx: Transaction,
  { topics, encode }: { topics: Topics; encode: Encode },
  anomalies: readonly Anomaly[],
): Promise<{ messages: OutboxRow[]; otherwise: { merchantId: string; payoutId: string }[] }> {
  if (anomalies.length === 0) return { messages: [], otherwise: [] }
  const distinct = together(anomalies.map((anomaly) => ({ id: anomalyId(anomaly), anomaly, times: 1 })))
  const shown = together(await bounded(tx, distinct))
  // In one order, so that two transactions with the same anomalies wait for one another instead of deadlocking.
  shown.sort((a, b) => (a.id < b.id ? -1 : 1))
  const kept = await tx.run(keepAnomalies, {
    anomalies: shown.map(({ id, anomaly, times }) => ({
      ...{ ...anomaly, anomalyId: id, exchange: json(anomaly.exchange), times },
    })),
  })
  const fresh = new Set(kept.flatMap(({ anomalyId, isNew }) => (isNew ? [anomalyId] : [])))
  return {
    messages: shown.flatMap(({ id, anomaly }) =>
      fresh.has(id) ? [messageOf(anomaly, id, tx.now, topics, encode)] : [],
    ),
    otherwise: kept.flatMap(({ merchantId, payoutId, saysOtherwise }) =>
      saysOtherwise && payoutId !== null ? [{ merchantId, payoutId }] : [],
    ),
  }
}

const together = (shown: readonly ShownAnomaly[]): ShownAnomaly[] =>
  [...Map.groupBy(shown, ({ id }) => id).values()].map((same) => ({
    ...(same.at(-1) as ShownAnomaly),
    times: same.reduce((all, { times }) => all + times, 0),
  }))

/** Replaces each anomaly beyond MOST_OPEN by the one that counts them. */
async function bounded(tx: Transaction, shown: readonly ShownAnomaly[]): Promise<ShownAnomaly[]> {
  const anomalies = shown.map(({ id, anomaly }) => ({ ...anomaly, anomalyId: id }))
  const beside = await tx.run(anomaliesBeside, { anomalies, beyond: BEYOND })
  const places = new Map(beside.map((each) => [each.place, each]))
  const added = new Map<string, number>()
  return shown.map((each, i) => {
    const found = places.get(i + 1)
    if (!found || found.isKept) return each
    const { merchantId, payoutId, orderNo, kind } = each.anomaly
    const key = mapKey(merchantId, payoutId ?? '', orderNo ?? '', kind)
    const before = added.get(key) ?? 0
    if (found.open + before < MOST_OPEN) {
      added.set(key, before + 1)
      return each
    }
    // Once somebody has acknowledged that one, another one counts later reports.
    const nth = anomalyId({ ...each.anomaly, detail: `${BEYOND} ${found.seenBeyond}` })
    return { ...each, id: nth, anomaly: { ...each.anomaly, detail: BEYOND } }
  })
}
