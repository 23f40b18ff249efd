import { formatTime } from '../../domain/times.ts'
import { intakeOffsets } from '../../ledger/sql/kafka/intake-offsets.ts'
import type { TopicAdmin } from '../../platform/kafka/admin.ts'
import { type Log, type Standing, startAt } from '../../platform/kafka/offsets.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Check, type Finding, good, warning, wrong } from '../examine.ts'
import { type SetAside, setAsideByMerchant } from '../sql/set-aside.ts'

type Commands = { connect: () => Promise<Pick<TopicAdmin, 'logs' | 'close'>>; topic: string }

/** The count stops here and then means "at least so many". */
const COUNT_UP_TO = 10_000

/** Whether Kafka still holds what intake will read next, and whether intake has stored what it read. */
export const commandChecks = (db: Database, { connect, topic }: Commands): Check[] => [
  {
    name: 'commands read on',
    needs: ['topics', 'migrations'],
    run: async () => {
      const admin = await connect()
      try {
        const stored = await db.run(intakeOffsets, { topic })
        return checkStandings(topic, await admin.logs(topic), stored)
      } finally {
        await admin.close()
      }
    },
  },
  {
    name: 'commands set aside',
    needs: ['migrations'],
    run: async () => checkSetAside(await db.run(setAsideByMerchant, { countUpTo: COUNT_UP_TO })),
  },
]

/** Kafka shows these as read. */
export function checkSetAside(waiting: readonly SetAside[]): Finding {
  if (waiting.length === 0) return good('every command that payoutd read is stored')
  const sentences = waiting.map(
    ({ merchantId, count, since }) =>
      `${count === COUNT_UP_TO ? 'at least ' : ''}${count} of merchant ${merchantId} since ${formatTime(since)}`,
  )
  return warning(
    `commands wait in the ledger because payoutd could not apply them: ${sentences.join('; ')}`,
    'another transaction may hold locks of the merchant: end it, and payoutd applies the commands; if there is none, the log of payoutd serve says why',
  )
}

const WORDS = {
  none: null,
  'records-gone': 'has dropped commands that payoutd had not read',
  'log-is-older': 'contains less than payoutd had read',
  'another-log': 'was deleted and created again',
} as const

/** Compares, by partition, what Kafka holds with the ledger's position. */
export function checkStandings(
  topic: string,
  logs: readonly (Log & { partition: number })[],
  stored: readonly (Standing & { partition: number })[],
): Finding {
  const faults = logs.flatMap(({ partition, ...log }) => {
    const standing = stored.find((one) => one.partition === partition) ?? null
    const fault = WORDS[startAt(standing, log).remark]
    return fault === null
      ? []
      : [`partition ${partition} ${fault} (payoutd would continue at ${standing?.offset})`]
  })
  if (faults.length === 0) return good(`${topic} contains the next commands to read`)
  return wrong(
    `${topic}: ${faults.join('; ')}`,
    'payoutd serve continues with what is there, and records an anomaly with the offsets. Ask the senders to send again each ' +
      'command that has no result, under its payoutId: payoutd does not pay again what this ledger has. A ledger that was ' +
      'set back may lack paid payouts and pay them again: run payoutd recover first, and compare with the orders at the gateway',
  )
}
