import { paise } from '../domain/money.ts'
import { type PublishedPayin, readBackEnd } from '../domain/payin/read-back.ts'
import type { PayinEnd } from '../domain/payin/states.ts'
import { utrKey } from '../domain/utr.ts'
import { type Ledger, storeDecisions } from '../ledger/ledger.ts'
import { READ_BACK, recalling } from '../ledger/read-back.ts'
import { topicKey } from '../messages/messages.ts'
import type { TopicRecord } from '../platform/kafka/records.ts'
import { mapKey } from '../platform/map-key.ts'
import { type Codec, demandReadable } from '../platform/registry/codec.ts'
import { behindPublished, hasEnd } from './sql/published.ts'
import { keyOf, lockPayins, type PayinKey, storePayins, storePublished } from './store.ts'

type PublishedDeps = {
  ledger: Ledger
  codec: Codec
  /** Reads a whole topic, one record after the other. */
  readTopic: (topic: string, onRecord: (record: TopicRecord) => Promise<void>) => Promise<void>
}

type EndedPayin = PayinKey & PublishedPayin

const PAGE = 1_000

/**
 * Gives payins of fenced merchants back the published ends that the database lost. Compares the ends in batches while it reads
 * the topic, and keeps only those that differ. Returns how many were lost.
 */
export async function readBackPayins(
  merchantIds: readonly string[],
  { ledger, codec, readTopic }: PublishedDeps,
): Promise<number> {
  const prefixes = merchantIds.map((merchantId) => topicKey(merchantId, ''))
  const differing = new Map<string, EndedPayin>()
  const unseen = new Map<string, EndedPayin>()
  async function compare(): Promise<void> {
    const ended = [...unseen.values()]
    unseen.clear()
    if (ended.length === 0) return
    for (const { place } of await ledger.db.run(behindPublished, { published: ended })) {
      const each = ended[place - 1] as EndedPayin
      differing.set(endKey(each), each)
    }
  }
  const { payinResults } = ledger.topics
  await readTopic(payinResults, async (record) => {
    const { key, value } = record
    if (!value || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
    const decoded = demandReadable(await codec.decode(value), payinResults, record)
    const published = decoded.value as PayinKey & Omit<PublishedPayin, 'status'> & { status: string }
    if (!merchantIds.includes(published.merchantId)) return
    const end = {
      ...published,
      status: published.status.toLowerCase() as PayinEnd,
      amount: paise(published.amount),
    }
    // Paid wins, even under a version that the ledger has passed since it was set back.
    const what = endKey(end)
    const held = differing.has(what) ? differing : unseen
    // Of two with one event id, the first is the one that consumers took.
    if ((held.get(what)?.version ?? 0) < end.version) held.set(what, end)
    if (unseen.size >= PAGE) await compare()
  })
  await compare()
  let lost = 0
  for (const each of differing.values()) if (await recallOne(each, ledger)) lost++
  return lost
}

/** Which end it is: a payin may have ended unpaid and then been paid. */
const endKey = (end: EndedPayin): string =>
  mapKey(
    keyOf(end),
    end.status === 'paid' ? 'paid' : 'not paid',
    end.status === 'paid' ? utrKey(end.utr ?? '') : '',
  )

/** Whether the ledger lacked it. */
function recallOne(end: EndedPayin, ledger: Ledger): Promise<boolean> {
  return recalling(ledger.db, async (tx) => {
    const [payin] = await lockPayins(tx, [end])
    if (!payin) return false
    const { merchantId, payinId, version, status: state } = end
    const has = await tx.run(hasEnd, { merchantId, payinId, version, state })
    if (payin.state !== state && has.length > 0) return false
    const recalled = readBackEnd(payin, end, tx.now)
    if (!recalled) return false
    if ('anomaly' in recalled) {
      await storeDecisions(tx, ledger, [recalled])
      return true
    }
    const { after, publish } = recalled
    // payoutd publishes an end that the ledger reached itself again with the recovery's operator as evidence.
    const source = after.state === state ? end.evidence : 'OPERATOR'
    const change = { before: payin, after, source, exchange: READ_BACK }
    if (publish) await storePayins(tx, ledger, [{ change }])
    else await storePublished(tx, change)
    return true
  })
}
