import { type Ledger, storeDecisions } from '../ledger/ledger.ts'
import { topicKey } from '../ledger/messages.ts'
import { READ_BACK, readBack } from '../ledger/read-back.ts'
import { paise } from '../payout/money.ts'
import type { Codec } from '../platform/kafka/codec.ts'
import type { IncomingRecord } from '../platform/kafka/records.ts'
import { type PublishedPayin, recall } from './recall.ts'
import { behindPublished, hasEnd } from './sql/published.ts'
import type { PayinEnd } from './states.ts'
import { keyOf, lockPayins, type PayinKey, storePayins, storeTold } from './store.ts'

type PublishedDeps = {
  ledger: Ledger
  codec: Codec
  /** Reads all of a topic, one record after the other. */
  readTopic: (topic: string, onRecord: (record: IncomingRecord) => Promise<void>) => Promise<void>
}

type Ended = PayinKey & PublishedPayin

const PAGE = 1_000

/**
 * Gives payins of fenced merchants back the ends that were published and that the database lost. Compares them some at a
 * time as it reads the topic, and holds only those that differ. Returns how many there were.
 */
export async function recallPayins(
  merchantIds: readonly string[],
  { ledger, codec, readTopic }: PublishedDeps,
): Promise<number> {
  const prefixes = merchantIds.map((merchantId) => topicKey(merchantId, ''))
  const differing = new Map<string, Ended>()
  const unseen = new Map<string, Ended>()
  async function compare(): Promise<void> {
    const ended = [...unseen.values()]
    unseen.clear()
    if (ended.length === 0) return
    const places = await ledger.db.run(behindPublished, {
      merchantIds: ended.map(({ merchantId }) => merchantId),
      payinIds: ended.map(({ payinId }) => payinId),
      states: ended.map(({ status }) => status),
      versions: ended.map(({ version }) => version),
      utrs: ended.map(({ utr }) => utr),
    })
    for (const { place } of places) {
      const each = ended[place - 1] as Ended
      differing.set(keyOf(each), each)
    }
  }
  const { payinResults } = ledger.topics
  await readTopic(payinResults, async ({ key, value }) => {
    if (!value || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
    const decoded = await codec.decode(value)
    if (decoded.kind === 'undecodable')
      throw new Error(`${payinResults} holds what cannot be read: ${decoded.detail}`)
    const told = decoded.value as PayinKey & Omit<PublishedPayin, 'status'> & { status: string }
    if (!merchantIds.includes(told.merchantId)) return
    const end = { ...told, status: told.status.toLowerCase() as PayinEnd, amount: paise(told.amount) }
    const held = differing.has(keyOf(end)) ? differing : unseen
    if (isLater(end, held.get(keyOf(end)))) held.set(keyOf(end), end)
    if (unseen.size >= PAGE) await compare()
  })
  await compare()
  for (const each of differing.values()) await recallOne(each, ledger)
  return differing.size
}

/**
 * Paid is the last word, also under a version that the ledger has passed since it was set back. Of two under one event id the
 * first is the one that was told.
 */
function isLater(end: PublishedPayin, known: PublishedPayin | undefined): boolean {
  if (!known || end.version === known.version) return !known
  if ((end.status === 'paid') !== (known.status === 'paid')) return end.status === 'paid'
  return end.version > known.version
}

function recallOne(end: Ended, ledger: Ledger): Promise<void> {
  return readBack(ledger.db, async (tx) => {
    const [payin] = await lockPayins(tx, [end])
    if (!payin) return
    const { merchantId, payinId, version, status: state } = end
    const has = await tx.run(hasEnd, { merchantId, payinId, version, state })
    if (payin.state !== state && has.length > 0) return
    const recalled = recall(payin, end)
    if (!recalled) return
    if ('anomaly' in recalled) return storeDecisions(tx, ledger, [recalled])
    const { after, told } = recalled
    // What the ledger itself came to is told once more for whoever runs the recovery.
    const source = after.state === state ? end.evidence : 'OPERATOR'
    const change = { before: payin, after, source, exchange: READ_BACK }
    if (told) await storePayins(tx, ledger, [{ change }])
    else await storeTold(tx, change)
  })
}
