import type { PayoutKey } from '../../domain/identifiers.ts'
import { type PublishedTransition, transitionIn } from '../../domain/recovery/published-story.ts'
import { BEYOND } from '../../ledger/anomalies.ts'
import { keyOf } from '../../ledger/ledger.ts'
import { topicKey } from '../../messages/messages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { demandReadable, type Readable } from '../../platform/registry/codec.ts'
import { publishedAnomaly } from './anomalies.ts'
import { lackedOf } from './lacking-transitions.ts'
import { messageIn, type ReadBackDeps } from './read-back-published.ts'
import { lacksAnomaly } from './sql/anomalies.ts'
import { merchantsBeside } from './sql/fence.ts'
import { lacksPublished } from './sql/read-back-published.ts'

const PAGE = 2_000

/** Compares what was published with the ledger, a page at a time. */
type Comparison = {
  note: (record: Readable) => void
  size: () => number
  /** What the ledger lacks of what was noted, in words; null: nothing. */
  lacking: () => Promise<string | null>
}

/**
 * What was published and the ledger lacks, in words: a version of a payout, another state under a version, or an anomaly. Null:
 * there is nothing. Kafka outlives a failover, and payoutd publishes nothing before it is committed, so this shows what the new
 * server lacks even if no evidence has arrived since. It does not count what was published and lost in an earlier failover that
 * payoutd already knows of. Reads the topics whole, and changes nothing. Throws if Kafka cannot be read.
 */
export async function publishedBeyond({ ledger, codec, readTopic }: ReadBackDeps): Promise<string | null> {
  const { db, topics } = ledger
  const merchants = await db.run(merchantsBeside, { merchantIds: [] })
  const prefixes = merchants.map(({ merchantId }) => topicKey(merchantId, ''))
  let found: string | null = null
  for (const [topic, comparison] of [
    [topics.results, versions(db)],
    [topics.events, versions(db)],
    [topics.anomalies, anomalies(db)],
  ] as const) {
    await readTopic(topic, async (record) => {
      const { key, value } = record
      if (!value || found !== null || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
      comparison.note(demandReadable(await codec.decode(value), topic, record))
      if (comparison.size() >= PAGE) found = await comparison.lacking()
    })
    found ??= await comparison.lacking()
    if (found !== null) return found
  }
  return null
}

type PublishedState = PayoutKey & { transition: PublishedTransition }

function versions(db: Database): Comparison {
  let read: PublishedState[] = []
  return {
    size: () => read.length,
    note(record) {
      const { merchantId, payoutId } = record.value as PayoutKey
      read.push({ merchantId, payoutId, transition: transitionIn(messageIn(record)) })
    },
    async lacking() {
      const page = read
      read = []
      const highest = new Map<string, PublishedState>()
      for (const each of page) {
        const known = highest.get(keyOf(each))
        if (!known || known.transition.version < each.transition.version) highest.set(keyOf(each), each)
      }
      const [beyond] = await db.run(lacksPublished, {
        payouts: [...highest.values()].map((each) => ({ ...each, published: each.transition.version })),
      })
      if (beyond) return versionInWords(beyond)
      const [other] = await lackedOf(db, page)
      return other ? otherInWords(other) : null
    },
  }
}

function anomalies(db: Database): Comparison {
  const read = new Map<string, { anomalyId: string; merchantId: string }>()
  return {
    size: () => read.size,
    note(record) {
      const { id, published: anomaly } = publishedAnomaly(record)
      if (anomaly.detail !== BEYOND) read.set(id, { anomalyId: id, merchantId: anomaly.merchantId })
    },
    async lacking() {
      const page = [...read.values()]
      read.clear()
      const [lacked] = await db.run(lacksAnomaly, { anomalies: page })
      return lacked ? `anomaly ${lacked.anomalyId} was published, and the ledger does not have it` : null
    },
  }
}

const versionInWords = ({
  published,
  version,
  ...key
}: PayoutKey & { published: number; version: number | null }) =>
  `payout ${key.payoutId} of ${key.merchantId} was published as version ${published}, and the ledger ` +
  (version === null ? 'does not have it' : `has version ${version}`)

const otherInWords = ({ transition: { version, toState }, ...key }: PublishedState) =>
  `payout ${key.payoutId} of ${key.merchantId} was published as ${toState} (version ${version}), which its history does not have`
