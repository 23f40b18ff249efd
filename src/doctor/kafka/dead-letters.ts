import type { TopicAdmin } from '../../platform/kafka/admin.ts'
import { type Check, type Finding, good, warning } from '../examine.ts'

type Letters = {
  connect: () => Promise<Pick<TopicAdmin, 'ranges' | 'close'>>
  topic: string
  /** How many were never replayed. Reads the whole topic. */
  unreplayed: () => Promise<number>
}

/** As many as are read in a moment. */
const MOST_READ = 10_000n

export const deadLetterChecks = (letters: Letters): Check[] => [
  { name: 'dead letters', needs: ['topics', 'migrations'], run: () => checkDeadLetters(letters) },
]

export async function checkDeadLetters({ connect, topic, unreplayed }: Letters): Promise<Finding> {
  const held = await lengthOf(topic, connect)
  if (held > MOST_READ)
    return warning(`${topic} holds ${held} dead letters: too many to look at here`, SEE_LIST)
  const never = held === 0n ? 0 : await unreplayed()
  if (never === 0) return good('no dead letter waits to be replayed')
  return warning(`${never} ${never === 1 ? 'dead letter was' : 'dead letters were'} never replayed`, SEE_LIST)
}

const SEE_LIST =
  'payoutd dlq list shows why; once you have removed the cause, payoutd dlq replay publishes them again, and with --dry-run shows what the ledger lacks'

async function lengthOf(topic: string, connect: Letters['connect']): Promise<bigint> {
  const admin = await connect()
  try {
    return (await admin.ranges(topic, 'uncommitted')).reduce((sum, { low, high }) => sum + high - low, 0n)
  } finally {
    await admin.close()
  }
}
