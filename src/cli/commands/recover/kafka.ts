import type { Config } from '../../../config/config.ts'
import type { PartitionEnd } from '../../../ledger/intake-backlog.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { ReadBackDeps } from '../../../operators/recovery/read-back-published.ts'
import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import { connectAdmin } from '../../../platform/kafka/admin.ts'
import { readTopic } from '../../../platform/kafka/read-topic.ts'
import type { TopicRecord } from '../../../platform/kafka/records.ts'
import { createLogger, silentLogger } from '../../../platform/log.ts'
import { type Codec, isAvro } from '../../../platform/registry/codec.ts'
import { note } from '../../print.ts'
import type { RecoverOptions } from './options.ts'

const MOST_NAMED = 10

/**
 * Until Kafka answers, the log says why it does not. Names and leaves out what is no message of payoutd by its first bytes; reading
 * ends at a batch that cannot be read.
 */
export function published(
  ledger: Ledger,
  codec: Codec,
  { kafka }: Config,
  { leaveOut = [] }: RecoverOptions,
  signal?: AbortSignal,
): ReadBackDeps {
  const log = createLogger({ name: 'payoutd', level: 'warn', destination: 2 })
  return {
    ...{ ledger, codec },
    async readTopic(topic, onRecord) {
      let left = 0
      const passOn = async (record: TopicRecord) => {
        const { partition, offset, value, unreadable } = record
        const place = `${topic}/${partition}/${offset}`
        const isNamed = leaveOut.includes(place)
        const cannotBeRead = unreadable?.reason === 'unreadable-batch'
        if (cannotBeRead && !isNamed)
          throw new ExpectedFailure(
            `${place}: ${unreadable.detail}. It may hold what the ledger has lost: give Kafka back an intact copy of it; if there is ` +
              `none, run the command again with --leave-out ${place}`,
          )
        if (!isNamed && (value === null || isAvro(value))) return onRecord(record)
        if (++left <= MOST_NAMED)
          note(
            `${place}: left out, because ${cannotBeRead ? 'it cannot be read' : 'payoutd did not write it'}`,
          )
      }
      try {
        await readTopic({ connection: kafka, topic, onRecord: passOn, signal, log })
      } catch (error) {
        if (!signal?.aborted) note(`${topic} was not read to its end: payoutd removes no fence`)
        throw error
      }
      if (left > MOST_NAMED) note(`${topic}: ${left} messages left out in all`)
    },
  }
}

/** Where each partition of a topic begins and ends now, with what waits for the end of a transaction. */
export async function endsOf(topic: string, { kafka }: Config): Promise<PartitionEnd[]> {
  const admin = await connectAdmin(kafka, silentLogger)
  try {
    return await admin.logs(topic, 'uncommitted')
  } finally {
    await admin.close()
  }
}
