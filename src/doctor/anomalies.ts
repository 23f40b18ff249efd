import { formatTime } from '../domain/times.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type OpenAnomalies, openAnomalies } from '../queries/sql/anomalies.ts'
import { type Check, type Finding, good, warning } from './examine.ts'

export const anomalyChecks = (db: Database): Check[] => [
  {
    name: 'anomalies',
    needs: ['migrations'],
    run: async () => checkAnomalies(await db.run(openAnomalies, {})),
  },
]

const changedText = (payouts: number): string =>
  `${payouts} ${payouts === 1 ? 'payout' : 'payouts'} among them came again with other content, which payoutd does not pay`

export function checkAnomalies(open: readonly OpenAnomalies[]): Finding {
  if (open.length === 0) return good('every anomaly is acknowledged')
  const sentences = open.map(
    ({ merchantId, count, changed, oldestId, oldestKind, oldestAt }) =>
      `${count} of merchant ${merchantId}, the oldest ${oldestKind} from ${formatTime(oldestAt)} (${oldestId})${changed > 0 ? `, and ${changedText(changed)}` : ''}`,
  )
  return warning(
    `nobody has acknowledged ${sentences.join('; ')}`,
    'payoutd anomaly show shows one with its evidence; payoutd anomaly acknowledge records that you looked at it',
  )
}
