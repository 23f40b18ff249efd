import { standings } from '../../ledger/sql/standings.ts'
import type { TopicAdmin } from '../../platform/kafka/admin.ts'
import { type Log, type Standing, startAt } from '../../platform/kafka/places.ts'
import type { Database } from '../../platform/postgres.ts'
import { type Check, type Finding, good, wrong } from './examine.ts'

type Commands = { connect: () => Promise<Pick<TopicAdmin, 'logs' | 'close'>>; topic: string }

/** Whether Kafka still holds what intake is to read next. */
export const commandChecks = (db: Database, { connect, topic }: Commands): Check[] => [
  {
    name: 'commands read on',
    needs: ['topics', 'migrations'],
    run: async () => {
      const admin = await connect()
      try {
        const stored = await db.run(standings, { topic })
        return judgeStandings(topic, await admin.logs(topic), stored)
      } finally {
        await admin.close()
      }
    },
  },
]

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
      'those again that have no result (identical repeats do no harm)',
  )
}
