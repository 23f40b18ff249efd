import { formatTime } from '../domain/times.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type KeptOf, keptByMerchant, type LostOf, lostByMerchant } from '../queries/sql/kept-callbacks.ts'
import { type Check, type Finding, good, warning } from './examine.ts'

/** `known`: by merchant, whoever is in the settings. */
export const keptCallbackChecks = (db: Database, known: ReadonlyMap<string, unknown>): Check[] => [
  {
    name: 'kept callbacks',
    needs: ['migrations'],
    run: async () => judgeKept(await db.run(keptByMerchant, {}), known),
  },
  {
    name: 'lost callbacks',
    needs: ['migrations'],
    run: async () => judgeLost(await db.run(lostByMerchant, {}), known),
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

function judgeLost(lost: readonly LostOf[], known: ReadonlyMap<string, unknown>): Finding {
  if (lost.length === 0)
    return good('no callback was lost, or is in doubt, that the gateway is still to be asked about')
  const sentences = lost.map(({ merchantId, count }) => {
    const orders = `${count} ${count === 1 ? 'order' : 'orders'} of merchant ${merchantId}`
    return known.has(merchantId)
      ? `${orders}, about which the gateway has yet to tell something`
      : `${orders}, which is not in the settings`
  })
  return warning(
    `callbacks found no room, were dropped, or are in doubt, for ${sentences.join('; ')}`,
    'put the merchant back, with the accounts that its orders were sent to in formerAccounts, and start payoutd serve, which ' +
      'asks the gateway about each, until it tells what it knows of the order, or said often that it has none',
  )
}
