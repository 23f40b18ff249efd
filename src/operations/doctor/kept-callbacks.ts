import type { Database } from '../../platform/postgres.ts'
import { type KeptOf, keptByMerchant } from '../sql/kept-callbacks.ts'
import { formatTime } from '../times.ts'
import { type Check, type Finding, good, warning } from './examine.ts'

/** `known`: by merchant, whoever is in the settings. */
export const keptCallbackChecks = (db: Database, known: ReadonlyMap<string, unknown>): Check[] => [
  {
    name: 'kept callbacks',
    needs: ['migrations'],
    run: async () => judgeKept(await db.run(keptByMerchant, {}), known),
  },
]

export function judgeKept(kept: readonly KeptOf[], known: ReadonlyMap<string, unknown>): Finding {
  if (kept.length === 0) return good('no callback waits for its merchant')
  const sentences = kept.map(({ merchantId, count, oldestAt }) => {
    const why = known.has(merchantId)
      ? 'came while it was not in the settings, and payoutd serve has not verified them since'
      : 'is not in the settings'
    return `${count} of merchant ${merchantId}, which ${why}, the oldest from ${formatTime(oldestAt)}`
  })
  return warning(
    `callbacks are kept: ${sentences.join('; ')}`,
    'put the merchant back, with the keys that they may be signed with in formerKeys, and start payoutd serve, which takes ' +
      'them up; after 30 days they are dropped',
  )
}
