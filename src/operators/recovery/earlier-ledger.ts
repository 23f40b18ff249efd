import type { Topics } from '../../messages/topics.ts'
import { ExpectedFailure } from '../../platform/expected-failure.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import type { KafkaConnection } from '../../platform/kafka/connection.ts'
import { silentLogger } from '../../platform/log.ts'
import { pause } from '../../platform/running/lifecycle.ts'

/**
 * Why payouts may have been sent that a ledger without payouts knows nothing of; null: nothing was ever published there. Rejects
 * if Kafka does not answer.
 */
export type EarlierLedger = () => Promise<string | null>

const WITHIN_MS = 10_000

/** Decides by the end offsets of the topics, which stay in place when Kafka deletes the messages. */
export const earlierLedger =
  (connection: KafkaConnection, { events, results }: Topics): EarlierLedger =>
  async () => {
    const over = new AbortController()
    const late = pause(WITHIN_MS, over.signal).then(() => {
      throw new ExpectedFailure(
        'Kafka does not answer, so payoutd cannot see whether an earlier ledger published to these topics: start it again when Kafka answers',
      )
    })
    try {
      return await Promise.race([published(connection, [events, results]), late])
    } finally {
      over.abort()
      late.catch(() => undefined)
    }
  }

async function published(connection: KafkaConnection, names: readonly string[]): Promise<string | null> {
  const admin = await connectAdmin(connection, silentLogger)
  try {
    for (const { name } of await admin.describeTopics(names)) {
      const ends = await admin.ranges(name, 'uncommitted')
      if (ends.some(({ high }) => high > 0n))
        return `this ledger was empty, but ${name} has messages that another ledger published: the database is new, or not the one used before`
    }
    return null
  } finally {
    await admin.close()
  }
}
