import type { Fault } from '../domain/fault.ts'
import { type PayoutKey, payoutIdFor, payoutKey } from '../domain/identifiers.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { fencedMerchants } from '../ledger/ledger.ts'
import { ExpectedFailure } from '../platform/expected-failure.ts'
import type { Database } from '../platform/postgres/postgres.ts'
import type { SealingKeys } from '../platform/seal.ts'
import { visible } from '../text/text.ts'
import { type AskedFor, unsealed } from './request.ts'
import { type Evidence, evidenceOf } from './review.ts'
import { byAgentpayOrderId, byOrderNo, byPayoutIds } from './sql/payouts/find.ts'
import { holdsOf, type StoredHold } from './sql/payouts/holds.ts'
import { reversalOf, type StoredReversal } from './sql/payouts/reversal.ts'
import { type PayoutRow, payoutWithCommand } from './sql/payouts/story.ts'
import { COUNT_WAITING_UP_TO, type Shortage, shortages } from './sql/shortages.ts'

/** Everything that is known about one payout; times in milliseconds since the epoch, amounts in paise. */
export type PayoutStory = Evidence &
  AskedFor & {
    payout: Payout & Pick<PayoutRow, 'priority' | 'acceptedAt' | 'updatedAt' | 'rowNumber' | 'notBefore'>
    /** Why a rejected command was rejected. */
    faults: Fault[]
    /** Why it was held for a person. */
    holds: StoredHold[]
    /** The payout that the merchant's balance does not cover: this one, or one that it waits behind; null: none. */
    shortage: Shortage | null
    /** How a paid transfer came back; null: it did not. */
    reversal: StoredReversal | null
    /** Its merchant is fenced: a payout that was never sent, as far as the ledger knows, does not end at its deadline. */
    isFenced: boolean
  }

/** The kind of name by which a payout was found. */
export type FoundBy = 'payoutId' | 'order number' | 'batch and reference' | 'agentpayOrderId'

/**
 * Finds a payout by its id, else by the gateway's name for it, or as `batch/reference` by its place in a payroll file. Null:
 * there is none. Throws an ExpectedFailure if several payouts match.
 */
export async function findPayout(
  db: Database,
  merchantId: string,
  id: string,
): Promise<{ key: PayoutKey; by: FoundBy } | null> {
  const ways = [
    ['payoutId', () => db.run(byPayoutIds, { merchantId, ids: [id] })],
    ['order number', () => db.run(byOrderNo, { merchantId, id })],
    ['batch and reference', () => db.run(byPayoutIds, { merchantId, ids: idsInFile(merchantId, id) })],
    ['agentpayOrderId', () => db.run(byAgentpayOrderId, { merchantId, id })],
  ] as const
  for (const [by, find] of ways) {
    const [found, ...others] = await find()
    if (found && others.length > 0) {
      const ids = [found, ...others].map(({ payoutId }) => payoutId)
      throw new ExpectedFailure(
        `${visible(id)} is the ${by} of several payouts: ask for one of ${ids.join(', ')}`,
      )
    }
    if (found) return { key: { merchantId, payoutId: found.payoutId }, by }
  }
  return null
}

/** Batch and reference may contain slashes: any of them may be the separator. */
export const idsInFile = (merchantId: string, id: string): string[] =>
  [...id.matchAll(/\//g)].map(({ index }) => payoutIdFor(merchantId, id.slice(0, index), id.slice(index + 1)))

/** The story of a payout that exists. Reads its parts one after another; what moves meanwhile shows in the later ones. */
export async function tellPayout(db: Database, key: PayoutKey, keys: SealingKeys): Promise<PayoutStory> {
  const { merchantId, payoutId } = key
  const [row] = await db.run(payoutWithCommand, { merchantId, payoutId })
  const [reversal] = await db.run(reversalOf, { merchantId, payoutId })
  const [shortage] = await db.run(shortages, { merchantId, countUpTo: COUNT_WAITING_UP_TO })
  if (!row) throw new Error(`payout ${payoutKey({ merchantId, payoutId })} was found and is gone`)
  const { sealed, faults, ...payout } = row
  return {
    payout,
    ...unsealed(key, sealed, keys),
    faults: faults ?? [],
    holds: await db.run(holdsOf, { merchantId, payoutIds: [payoutId] }),
    shortage: (payout.ready && shortage) || null,
    reversal: reversal ?? null,
    isFenced: (await fencedMerchants(db)).has(merchantId),
    ...(await evidenceOf(db, payout)),
  }
}
