import { unreadCommands } from '../../ledger/intake-backlog.ts'
import { MOVE_TOPICS, othersTopics } from '../../ledger/own-topics.ts'
import type { HeldUp, TopicAdmin, TopicSpec } from '../../platform/kafka/admin.ts'
import { END_IT, heldUpText } from '../../platform/kafka/open-transaction.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { pause } from '../../platform/running/lifecycle.ts'
import { type Check, type Finding, good, warning, wrong } from '../examine.ts'
import { checkTopics } from './topics.ts'

export type KafkaToCheck = {
  connect: () => Promise<TopicAdmin>
  address: string
  specs: readonly TopicSpec[]
  commands: string
  db: Database
  topicPrefix: string
}

const LOOK_AGAIN_MS = 2_000

export function kafkaChecks({ connect, address, specs, commands, db, topicPrefix }: KafkaToCheck): Check[] {
  let connection: Promise<TopicAdmin> | undefined
  const admin = () => (connection ??= connect())
  const look = async (): Promise<CommandsLook> => {
    const ends = await (await admin()).logs(commands)
    const unread = await unreadCommands(commands, ends, db)
    return ends.map(({ partition, high }) => {
      const waiting = unread.get(partition) ?? 0n
      return { partition, waiting, read: high - waiting }
    })
  }
  const heldUp = async (): Promise<HeldUpTopic[]> => {
    const found: HeldUpTopic[] = []
    for (const { name: topic } of specs)
      for (const held of await (await admin()).heldUp(topic)) found.push({ topic, ...held })
    return found
  }
  return [
    {
      name: 'Kafka',
      run: async () => {
        // Connecting proves little: KafkaJS also "connects" to a web server.
        await (await admin()).describeTopics([])
        return good(`Kafka at ${address} answers`)
      },
    },
    {
      name: 'topics',
      needs: ['Kafka'],
      run: async () =>
        checkTopics(specs, await (await admin()).describeTopics(specs.map(({ name }) => name))),
    },
    {
      name: 'own topics',
      needs: ['migrations'],
      run: async () => {
        const other = await othersTopics(db, topicPrefix)
        return other === null ? good('no other topics belong to this ledger') : wrong(other, MOVE_TOPICS)
      },
    },
    {
      name: 'transactions',
      needs: ['topics'],
      run: async () => {
        const longestMs = await (await admin()).longestTransactionMs()
        const first = await heldUp()
        if (first.length === 0) return checkTransactions([], [], longestMs)
        await pause(LOOK_AGAIN_MS)
        return checkTransactions(first, await heldUp(), longestMs)
      },
    },
    {
      name: 'commands waiting',
      needs: ['topics', 'migrations'],
      run: async () => {
        const first = await look()
        if (first.every(({ waiting }) => waiting === 0n)) return checkWaiting(first, first, commands)
        await pause(LOOK_AGAIN_MS)
        const found = checkWaiting(first, await look(), commands)
        if (found.state === 'good') return found
        // Under load a partition may have to wait for its turn.
        await pause(LOOK_AGAIN_MS)
        return checkWaiting(first, await look(), commands)
      },
    },
  ]
}

/** Longer than any honest producer needs to send some commands. */
const LONG_MS = 60_000

type HeldUpTopic = HeldUp & { topic: string }

/** An open transaction is good if it is another one, or has ended, at the second look. */
export function checkTransactions(
  before: readonly HeldUpTopic[],
  after: readonly HeldUpTopic[],
  longestMs: number | null,
): Finding {
  const stuck = after.filter(({ topic, partition, from }) =>
    before.some((one) => one.topic === topic && one.partition === partition && one.from === from),
  )
  if (stuck.length > 0) {
    const where = stuck.map((held) => `${held.topic}, ${heldUpText(held)}`)
    return warning(
      `an open transaction holds up what stands behind it, which nobody can read until it ends: ${where.join('; ')}`,
      END_IT,
    )
  }
  if (longestMs !== null && longestMs > LONG_MS) {
    return warning(
      `a transaction may stay open for ${longestMs / 1000} s, and meanwhile holds up every command behind it in its partition`,
      'set transaction.max.timeout.ms of the brokers to 60000 or less, or do not let senders of commands use transactions',
    )
  }
  return good('no open transaction holds up a topic of payoutd')
}

/** `waiting`: what the ledger lacks of a partition, of which it has read all before offset `read`. */
type PartitionLook = { partition: number; waiting: bigint; read: bigint }
type CommandsLook = readonly PartitionLook[]

/** A backlog is good if intake works on it, in each partition, between the two looks. */
export function checkWaiting(before: CommandsLook, after: CommandsLook, commands: string): Finding {
  const behind = after.filter(({ waiting }) => waiting > 0n)
  const waiting = behind.reduce((sum, each) => sum + each.waiting, 0n)
  if (waiting === 0n) return good(`no command waits in ${commands}`)
  const stuck = behind.filter(({ partition, read }) =>
    before.some((one) => one.partition === partition && one.waiting > 0n && one.read === read),
  )
  if (stuck.length === 0) return good(`${waiting} commands wait in ${commands}, and payoutd is reading them`)
  const where = stuck.map(({ partition, read }) => `partition ${partition} from offset ${read} on`)
  return wrong(
    `${stuck.reduce((sum, each) => sum + each.waiting, 0n)} commands wait in ${commands}, and no payoutd reads them: ${where.join(', ')}`,
    'start payoutd serve with the role intake, or look at its log: if it runs, another program may use its consumer group, as ' +
      'kafka-consumer-groups --describe shows',
  )
}
