import type { PayoutKey } from '../ledger/ledger.ts'
import { type FoundBy, findPayout } from '../operations/payout-story.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres.ts'

export const PAYOUT_ID =
  'payoutId, order number, agentpayOrderId, or batch/reference of a row of a payroll file'
export const WHOSE_PAYOUT = 'whose payout it is; may be left out where there is one merchant'

/** The payout that a person named. Throws an ExpectedFailure where nobody knows it. */
export async function payoutOf(
  db: Database,
  merchantId: string,
  id: string,
): Promise<{ key: PayoutKey; by: FoundBy }> {
  const found = await findPayout(db, merchantId, id)
  if (found) return found
  throw new ExpectedFailure(
    `merchant ${merchantId} has no payout with the payoutId, order number, agentpayOrderId or batch/reference ${id}`,
  )
}
