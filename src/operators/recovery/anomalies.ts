import type { EvidenceSource } from '../../domain/evidence.ts'
import { anomalyId, type PayoutKey } from '../../domain/identifiers.ts'
import { IN_DOUBT } from '../../domain/payout/apply-evidence.ts'
import { NEVER_SENT } from '../../domain/payout/ledger-lacks-attempt.ts'
import { shown, shownBesides } from '../../domain/payout/order-shown.ts'
import type { Anomaly } from '../../domain/payout/payout.ts'
import { BESIDES } from '../../domain/payout/reported-elsewhere.ts'
import { change } from '../../domain/payout/transition.ts'
import { BEYOND } from '../../ledger/anomalies.ts'
import { keyOf, type Ledger, lockPayouts, storeDecisions, storeSaidOtherwise } from '../../ledger/ledger.ts'
import { recalling } from '../../ledger/read-back.ts'
import { topicKey } from '../../messages/messages.ts'
import type { Transaction } from '../../platform/postgres/postgres.ts'
import { demandReadable, type Readable } from '../../platform/registry/codec.ts'
import type { ReadBackDeps } from './read-back-published.ts'
import { ordersShown, recallPublished, showPayins } from './sql/anomalies.ts'

/** A record of schemas/PayoutAnomaly.avsc. */
type AnomalyRecord = Pick<Anomaly, 'merchantId' | 'payoutId' | 'kind' | 'detail'> & {
  mchOrderNo: string | null
  evidence: EvidenceSource
  occurredAt: number
}

const PAGE = 1_000

/**
 * Gives fenced merchants back the anomalies that were published and that the database lost. The gateway never repeats a report of
 * its own accord, so nothing else would show them, for example that the money of a paid payout came back. They are open, and not
 * published again; their wire evidence is lost. Anomalies that only count others are left out. Returns how many there were.
 */
export async function recallAnomalies(
  merchantIds: readonly string[],
  { ledger, codec, readTopic }: ReadBackDeps,
): Promise<number> {
  const { db, topics } = ledger
  const prefixes = merchantIds.map((merchantId) => topicKey(merchantId, ''))
  const unseen = new Map<string, AnomalyRecord>()
  let lost = 0
  async function keep(): Promise<void> {
    const published = [...unseen]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([anomalyId, { mchOrderNo: orderNo, evidence: source, occurredAt: at, ...anomaly }]) => ({
        ...{ ...anomaly, anomalyId, orderNo, source, at },
      }))
    unseen.clear()
    if (published.length === 0) return
    const kept = await recalling(db, async (tx) => {
      const back = await tx.run(recallPublished, { published })
      const about = back.flatMap(({ merchantId, payoutId }) =>
        payoutId === null ? [] : [{ merchantId, payoutId }],
      )
      await storeSaidOtherwise(tx, about)
      const but = IN_DOUBT['of-a-request'].kind
      await keepShown(
        tx,
        ledger,
        await tx.run(ordersShown, { anomalies: back, but, besides: [...BESIDES, NEVER_SENT] }),
      )
      await tx.run(showPayins, { anomalies: back, but })
      return back
    })
    lost += kept.length
  }
  await readTopic(topics.anomalies, async (record) => {
    const { key, value } = record
    if (!value || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
    const { id, published } = publishedAnomaly(
      demandReadable(await codec.decode(value), topics.anomalies, record),
    )
    if (!merchantIds.includes(published.merchantId) || published.detail === BEYOND) return
    unseen.set(id, published)
    if (unseen.size >= PAGE) await keep()
  })
  await keep()
  return lost
}

/** An anomaly as the topic has it, with its id. */
export function publishedAnomaly({ value }: Readable): { id: string; published: AnomalyRecord } {
  const published = value as AnomalyRecord
  const { merchantId, payoutId, mchOrderNo: orderNo, kind, detail } = published
  return { id: anomalyId({ merchantId, payoutId, orderNo, kind, detail }), published }
}

/** Of those that are open. One that waits goes to a person. */
async function keepShown(
  tx: Transaction,
  ledger: Ledger,
  shownOrders: readonly (PayoutKey & { isBesides: boolean })[],
): Promise<void> {
  const besides = new Set(shownOrders.filter(({ isBesides }) => isBesides).map(keyOf))
  const decisions = (await lockPayouts(tx, shownOrders)).flatMap((payout) => {
    const after = besides.has(keyOf(payout)) ? shownBesides(payout) : shown(payout)
    const note = 'before the ledger was set back the gateway showed that it has or had an order of it'
    return after === payout ? [] : [change(payout, after, 'OPERATOR', { note })]
  })
  await storeDecisions(tx, ledger, decisions)
}
