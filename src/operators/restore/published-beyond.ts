import type { PayoutKey } from '../../domain/identifiers.ts'
import { keyOf } from '../../ledger/ledger.ts'
import { topicKey } from '../../messages/messages.ts'
import type { ReadBackDeps } from './read-back-published.ts'
import { merchantsBeside } from './sql/fence.ts'
import { lacksPublished } from './sql/read-back-published.ts'

type Version = PayoutKey & { version: number }

const PAGE = 2_000

/**
 * A payout, in words, of which more was published than the ledger has; null: there is none. Kafka outlives a failover, and
 * payoutd publishes nothing before it is committed, so this shows what the new server lacks even if no evidence has arrived
 * since. It does not count what was published and lost in an earlier failover that payoutd already knows of. Reads both topics
 * whole, and changes nothing. Throws if Kafka cannot be read.
 */
export async function publishedBeyond({ ledger, codec, readTopic }: ReadBackDeps): Promise<string | null> {
  const merchants = await ledger.db.run(merchantsBeside, { merchantIds: [] })
  const prefixes = merchants.map(({ merchantId }) => topicKey(merchantId, ''))
  let found: string | null = null
  let page = new Map<string, Version>()
  const compare = async () => {
    const wanted = [...page.values()]
    page = new Map()
    const [lacking] = await ledger.db.run(lacksPublished, {
      merchantIds: wanted.map(({ merchantId }) => merchantId),
      payoutIds: wanted.map(({ payoutId }) => payoutId),
      versions: wanted.map(({ version }) => version),
    })
    found = lacking ? inWords(lacking) : null
  }
  for (const topic of [ledger.topics.results, ledger.topics.events]) {
    await readTopic(topic, async ({ key, value }) => {
      if (!value || found !== null || !prefixes.some((prefix) => String(key).startsWith(prefix))) return
      const decoded = await codec.decode(value)
      if (decoded.kind === 'undecodable')
        throw new Error(`${topic} has a message that payoutd cannot read: ${decoded.detail}`)
      const { merchantId, payoutId, version } = decoded.value as Version
      const whose = keyOf({ merchantId, payoutId })
      const known = page.get(whose)
      if (known && known.version >= version) return
      page.set(whose, { merchantId, payoutId, version })
      if (page.size === PAGE) await compare()
    })
    if (found === null) await compare()
  }
  return found
}

const inWords = ({
  merchantId,
  payoutId,
  published,
  version,
}: PayoutKey & { published: number; version: number | null }) =>
  `payout ${payoutId} of ${merchantId} was published as version ${published}, and the ledger ` +
  (version === null ? 'does not have it' : `has version ${version}`)
