import { formatTime } from '../domain/times.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import { type KeptOf, keptByMerchant, type LostOf, lostByMerchant } from '../queries/sql/kept-callbacks.ts'
import { type Check, type Finding, good, warning } from './examine.ts'

/** `known`: the merchants in the settings. */
export const keptCallbackChecks = (db: Database, known: ReadonlyMap<string, unknown>): Check[] => [
  {
    name: 'kept callbacks',
    needs: ['migrations'],
    run: async () => checkKept(await db.run(keptByMerchant, {}), known),
  },
  {
    name: 'lost callbacks',
    needs: ['migrations'],
    run: async () => checkLost(await db.run(lostByMerchant, {}), known),
  },
]

export function checkKept(kept: readonly KeptOf[], known: ReadonlyMap<string, unknown>): Finding {
  if (kept.length === 0) return good('no callback waits for its merchant')
  const sentences = kept.map(({ merchantId, count, oldestAt }) => {
    const why = known.has(merchantId)
      ? 'was not in the settings when they came, and payoutd serve has not verified them since'
      : 'is not in the settings'
    return `${count} of merchant ${merchantId}, which ${why}, the oldest from ${formatTime(oldestAt)}`
  })
  return warning(
    `payoutd keeps callbacks that it cannot verify yet: ${sentences.join('; ')}`,
    'put the merchant back into the settings, with the keys that may have signed them in formerKeys, and start payoutd serve, ' +
      'which applies them. payoutd drops them after 30 days',
  )
}

function checkLost(lost: readonly LostOf[], known: ReadonlyMap<string, unknown>): Finding {
  if (lost.length === 0)
    return good('payoutd has queried the gateway about every callback that was lost or in doubt')
  const sentences = lost.map(({ merchantId, count }) => {
    const orders = `${count} ${count === 1 ? 'order' : 'orders'} of merchant ${merchantId}`
    return known.has(merchantId)
      ? `${orders}, whose state the gateway has not reported yet`
      : `${orders}, which is not in the settings`
  })
  const isKnown = lost.every(({ merchantId }) => known.has(merchantId))
  return warning(
    `payoutd could not keep callbacks, dropped them, doubts them, or lacked the account to ask, for ${sentences.join('; ')}`,
    (isKnown
      ? 'keep payoutd serve running, with the accounts of these orders in the settings'
      : 'put the merchant back into the settings, with the accounts of its orders in formerAccounts, and start payoutd serve') +
      '. It queries each order until the gateway reports its state, or has said several times that it has no such order',
  )
}
