import type { Database } from '../../platform/postgres.ts'
import { circuitOf, pauseOf } from '../merchant-overview.ts'
import { circuitText, pauseText } from '../merchant-text.ts'
import { inReview, type MerchantRow, merchantRows } from '../sql/merchants.ts'
import { type Check, type Finding, good, warning } from './examine.ts'

/** Why nothing may move though everything works. */
export const standstillChecks = (db: Database): Check[] => [
  {
    name: 'paused merchants',
    needs: 'migrations',
    run: async () => judgePauses(await db.run(merchantRows, {})),
  },
  {
    name: 'circuits',
    needs: 'migrations',
    run: async () => judgeCircuits(await db.run(merchantRows, {})),
  },
  {
    name: 'payouts in review',
    needs: 'migrations',
    run: async () => judgeReviews(await db.run(inReview, {})),
  },
]

export function judgePauses(merchants: readonly MerchantRow[]): Finding {
  const paused = merchants.flatMap((row) => {
    const pause = pauseOf(row)
    return pause ? [pauseText(row.merchantId, pause)] : []
  })
  if (paused.length === 0) return good('no merchant is paused')
  return warning(paused.join('; '), 'payoutd resume lets a merchant go on, once the reason is gone')
}

export function judgeCircuits(merchants: readonly MerchantRow[]): Finding {
  const open = merchants.flatMap((row) => {
    const circuit = circuitOf(row)
    return circuit ? [circuitText(row.merchantId, circuit)] : []
  })
  if (open.length === 0) return good('no circuit is open')
  return warning(
    open.join('; '),
    'see what became of the gateway: one payout tests it when that time has come',
  )
}

export function judgeReviews(counts: readonly { merchantId: string; count: number }[]): Finding {
  const waiting = counts.filter(({ count }) => count > 0)
  if (waiting.length === 0) return good('no payout waits for a person')
  return warning(
    `a person has to decide: ${waiting.map(({ merchantId, count }) => `${count} of merchant ${merchantId}`).join(', ')}`,
    'payoutd payout list --state review names them, payoutd payout show tells the evidence',
  )
}
