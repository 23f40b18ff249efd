import { formatTime } from '../domain/times.ts'
import type { StoredHold } from '../queries/sql/payouts/holds.ts'
import { CAME_BACK } from './other-payments-text.ts'

/** Why a payout was held for a person, in words that follow "because". */
export function holdText({
  reason,
  earlierPayoutId,
  earlierBatchId,
  earlierMerchantId,
  inSameBatch,
  earlierState,
  earlierMayBePaid,
  earlierCameBack,
  since,
}: Omit<StoredHold, 'paysAt'>): string {
  if (earlierPayoutId === null && earlierBatchId === null)
    return `it was held as ${reason} on ${formatTime(since)}, before the ledger was set back and lost the payment that it was compared with`
  const batch = earlierBatchId === null ? '' : ` of batch ${earlierBatchId}`
  const mayBePaid = earlierMayBePaid
    ? `, yet the gateway has said otherwise, see payoutd payout show ${earlierPayoutId}`
    : ''
  const cameBack = earlierCameBack ? CAME_BACK : ''
  const earlier = `payout ${earlierPayoutId}${batch} (${earlierState}${cameBack}${mayBePaid})`
  switch (reason) {
    case 'duplicate':
      return inSameBatch
        ? `${earlier}, the same batch, pays the same amount to the same beneficiary under another reference, and is from another file or is the same row`
        : `${earlier} of ${formatTime(since)} pays the same amount to the same beneficiary`
    case 'duplicate-file':
      return `the same file came as batch ${earlierBatchId}${earlierMerchantId === null ? '' : ` of merchant ${earlierMerchantId}`} on ${formatTime(since)}`
    case 'beneficiary-changed':
      return earlierState === 'paid' || earlierMayBePaid
        ? `its bank details differ from those used for this beneficiary since ${formatTime(since)}, last by ${earlier}`
        : `its bank details differ from those of ${earlier} of ${formatTime(since)} to the same beneficiary`
  }
}
