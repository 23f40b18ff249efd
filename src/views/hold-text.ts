import { formatTime } from '../domain/times.ts'
import type { StoredHold } from '../queries/sql/holds.ts'

/** Why a payout was held for a person, in words that follow "because". */
export function holdText({
  reason,
  earlierPayoutId,
  earlierBatchId,
  inSameBatch,
  earlierState,
  earlierMayBePaid,
  since,
}: Omit<StoredHold, 'paysAt'>): string {
  if (earlierPayoutId === null && earlierBatchId === null)
    return `it was held as ${reason} on ${formatTime(since)}, before the ledger was set back, which lost what it was compared with`
  const batch = earlierBatchId === null ? '' : ` of batch ${earlierBatchId}`
  const mayBePaid = earlierMayBePaid
    ? `, yet the gateway has said otherwise, see payoutd payout show ${earlierPayoutId}`
    : ''
  const earlier = `payout ${earlierPayoutId}${batch} (${earlierState}${mayBePaid})`
  switch (reason) {
    case 'duplicate':
      return inSameBatch
        ? `${earlier}, the same batch, pays the same amount to the same beneficiary under another reference, and came in another file or is the same row`
        : `${earlier} is of the same amount to the same beneficiary, from ${formatTime(since)}`
    case 'duplicate-file':
      return `the same file came as batch ${earlierBatchId} on ${formatTime(since)}`
    case 'beneficiary-changed':
      return `its bank details are not those that this beneficiary was paid to since ${formatTime(since)}, last by ${earlier}`
  }
}
