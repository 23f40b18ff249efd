import type { Decision } from '../../domain/payout/payout.ts'
import { type Ledger, storeDecisions } from '../../ledger/ledger.ts'
import { recalling } from '../../ledger/read-back.ts'
import { eachPayout } from '../each-payout.ts'
import { publishedOnly } from './sql/without-command.ts'

const PAGE = 10_000
/** So many get an anomaly each; one more anomaly counts the others. */
export const MOST_NAMED = 100

/**
 * Raises anomalies for a merchant's payouts that were published, not as ended, and that the ledger lacks though intake has stored
 * all commands that Kafka held: the gateway may have them, and nobody asks. Returns how many they are.
 */
export async function reportWithoutCommand(merchantId: string, ledger: Ledger): Promise<number> {
  const named: Decision[] = []
  let count = 0
  const published = eachPayout((after) => ledger.db.run(publishedOnly, { merchantId, after, limit: PAGE }))
  for await (const { payoutId, orderNo, state, version, ended } of published) {
    if (ended) continue
    count++
    if (named.length >= MOST_NAMED) continue
    const detail = `it was published as ${state} (version ${version}), the ledger lost it, and ${NOBODY_ASKS}`
    named.push(gone(merchantId, payoutId, orderNo, detail))
  }
  const others = count - named.length
  if (others > 0) {
    const detail = `${others} more payouts were published as not ended and the ledger lost them. ${NOBODY_ASK_MORE}`
    named.push(gone(merchantId, null, null, detail))
  }
  if (named.length > 0) await recalling(ledger.db, (tx) => storeDecisions(tx, ledger, named))
  return count
}

const NOBODY_ASKS =
  'its command has not come again. The gateway may have the order: send the command again, then run payoutd recover, which queries the gateway'

/** The same about several payouts. */
const NOBODY_ASK_MORE =
  'Their commands have not come again. The gateway may have the orders: send the commands again, then run payoutd recover, which queries the gateway'

const gone = (
  merchantId: string,
  payoutId: string | null,
  orderNo: string | null,
  detail: string,
): Decision => ({
  anomaly: {
    merchantId,
    payoutId,
    orderNo,
    kind: 'published-and-gone',
    detail,
    source: 'OPERATOR',
    exchange: null,
  },
})
