import { isOrderNumber, type PayoutKey } from '../../../domain/identifiers.ts'

import { ExpectedFailure } from '../../../platform/expected-failure.ts'
import type { Database } from '../../../platform/postgres/postgres.ts'
import { type FoundBy, findPayout, idsInFile } from '../../../queries/payout-story.ts'
import { visible } from '../../../text/text.ts'

export const PAYOUT_ID =
  'payoutId, order number, agentpayOrderId, or batch/reference of a row in a payroll file'
export const WHOSE_PAYOUT = 'the merchant of the payout; you can omit it if there is only one merchant'

/** The payout that a person named. Throws an ExpectedFailure if there is none. */
export async function payoutOf(
  db: Database,
  merchantId: string,
  id: string,
): Promise<{ key: PayoutKey; by: FoundBy }> {
  const found = await findPayout(db, merchantId, id)
  if (found) return found
  throw new ExpectedFailure(
    `merchant ${merchantId} has no payout with the payoutId, order number, agentpayOrderId or batch/reference ${visible(id)}: payoutd dlq list shows commands that payoutd could not accept`,
  )
}

/**
 * The payoutIds of the payouts that a person named, one by one, or by a batch whose payouts `ofBatch` finds. Throws an
 * ExpectedFailure if none is named, or if one is unknown, unless it may still arrive: a payout that has not arrived has no order
 * number yet.
 */
export async function payoutsOf(
  db: Database,
  merchantId: string,
  ids: readonly string[],
  batchId: string | undefined,
  ofBatch: (batchId: string) => Promise<{ payoutId: string }[]>,
  { orToCome = false } = {},
): Promise<string[]> {
  if (ids.length > 0 && batchId !== undefined) throw new ExpectedFailure('give ids or --batch, not both')
  if (batchId !== undefined) {
    return (await ofBatch(batchId)).map(({ payoutId }) => payoutId)
  }
  if (ids.length === 0) throw new ExpectedFailure('which payouts? give their ids, or --batch')
  const found: string[] = []
  for (const id of ids) {
    const mayCome = orToCome && !isOrderNumber(id)
    const known = mayCome ? await findPayout(db, merchantId, id) : await payoutOf(db, merchantId, id)
    found.push(...(known ? [known.key.payoutId] : [id, ...idsInFile(merchantId, id)]))
  }
  return found
}
