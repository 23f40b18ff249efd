import { replayLog } from '../../messages/topics.ts'
import type { TopicAdmin } from '../../platform/kafka/admin.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Check, type Finding, good, warning } from '../examine.ts'
import { replayedOf } from '../sql/replays.ts'

type Letters = { connect: () => Promise<Pick<TopicAdmin, 'logs' | 'close'>>; topic: string }

export const deadLetterChecks = (db: Database, letters: Letters): Check[] => [
  {
    name: 'dead letters',
    needs: ['topics', 'migrations'],
    run: async () => checkDeadLetters(await unreplayed(db, letters)),
  },
]

/**
 * Counts by offsets alone, however many there are, so a letter that the relay published twice counts twice until the topic drops
 * it.
 */
async function unreplayed(db: Database, { connect, topic }: Letters): Promise<bigint> {
  const admin = await connect()
  try {
    const ranges = await admin.logs(topic)
    const id = ranges[0]?.id ?? null
    const [replayed] = await db.run(replayedOf, {
      topics: id === null ? [topic] : [topic, replayLog(topic, id)],
      held: ranges,
    })
    return ranges.reduce((sum, { low, high }) => sum + high - low, 0n) - BigInt(replayed?.count ?? 0)
  } finally {
    await admin.close()
  }
}

export function checkDeadLetters(unreplayed: bigint): Finding {
  if (unreplayed === 0n) return good('no dead letter waits to be replayed')
  return warning(
    `${unreplayed} ${unreplayed === 1n ? 'dead letter was' : 'dead letters were'} never replayed: the ledger has nothing of these commands`,
    'payoutd dlq list shows why; once you have removed the cause, payoutd dlq replay publishes them again',
  )
}
