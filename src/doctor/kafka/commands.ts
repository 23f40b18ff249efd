import { formatTime } from '../../domain/times.ts'
import { intakeOffsets } from '../../ledger/sql/intake-offsets.ts'
import type { TopicAdmin } from '../../platform/kafka/admin.ts'
import { type Log, type Standing, startAt } from '../../platform/kafka/offsets.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Check, type Finding, good, warning, wrong } from '../examine.ts'
import { type SetAside, setAsideByMerchant } from '../sql/set-aside.ts'

type Commands = { connect: () => Promise<Pick<TopicAdmin, 'logs' | 'close'>>; topic: string }

/** Beyond this there are "at least so many". */
const COUNT_UP_TO = 10_000

/** Whether Kafka still holds what intake is to read next, and whether what it has read is taken in. */
export const commandChecks = (db: Database, { connect, topic }: Commands): Check[] => [
  {
    name: 'commands read on',
    needs: ['topics', 'migrations'],
    run: async () => {
      const admin = await connect()
      try {
        const stored = await db.run(intakeOffsets, { topic })
        return judgeStandings(topic, await admin.logs(topic), stored)
      } finally {
        await admin.close()
      }
    },
  },
  {
    name: 'commands set aside',
    needs: ['migrations'],
    run: async () => judgeSetAside(await db.run(setAsideByMerchant, { countUpTo: COUNT_UP_TO })),
  },
]

/** Kafka shows these as read. */
export function judgeSetAside(waiting: readonly SetAside[]): Finding {
  if (waiting.length === 0) return good('no command that was read waits to be taken in')
  const sentences = waiting.map(
    ({ merchantId, count, since }) =>
      `${count === COUNT_UP_TO ? 'at least ' : ''}${count} of merchant ${merchantId} since ${formatTime(since)}`,
  )
  return warning(
    `commands were read and wait in the ledger: ${sentences.join('; ')}`,
    'somebody holds locks of the merchant: end the transaction that stays open, and they are taken in; if there is none, the log of payoutd serve says why',
  )
}

const WORDS = {
  none: null,
  'records-gone': 'has dropped commands that payoutd had not read',
  'log-is-older': 'holds less than payoutd had read',
  'another-log': 'was deleted and made again',
} as const

/** By partition, what Kafka holds and where the ledger stands. */
export function judgeStandings(
  topic: string,
  logs: readonly (Log & { partition: number })[],
  stored: readonly (Standing & { partition: number })[],
): Finding {
  const faults = logs.flatMap(({ partition, ...log }) => {
    const standing = stored.find((one) => one.partition === partition) ?? null
    const fault = WORDS[startAt(standing, log).remark]
    return fault === null ? [] : [`partition ${partition} ${fault} (it was to go on at ${standing?.offset})`]
  })
  if (faults.length === 0) return good(`${topic} holds what is to be read next`)
  return wrong(
    `${topic}: ${faults.join('; ')}`,
    'payoutd serve reads on from what is there, and keeps an anomaly that names the offsets; whoever sends commands sends ' +
      'those again that have no result, under their payoutIds (what this ledger has, it does not pay again); a ledger that was ' +
      'set back may lack what was paid, and would pay it again: there run payoutd recover first, and compare with what the gateway has',
  )
}
