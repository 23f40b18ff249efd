import { countRefused } from '../../operators/sql/retry-messages.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import { type Check, type Finding, good, warning } from '../examine.ts'

export const refusedMessageChecks = (db: Database): Check[] => [
  {
    name: 'refused messages',
    needs: ['migrations'],
    run: async () => checkRefused(await db.run(countRefused, {})),
  },
]

export function checkRefused(refused: readonly { topic: string; reason: string; count: number }[]): Finding {
  if (refused.length === 0) return good('Kafka has refused no message')
  return warning(
    `Kafka has refused messages, so no reader has them: ${refused.map(({ topic, reason, count }) => `${count} on ${topic} (${reason})`).join(', ')}`,
    'payoutd outbox list shows them; raise max.message.bytes of the topic, or check what else it requires, then publish them with payoutd outbox retry',
  )
}
