import { CANCELS_KEPT_DAYS } from '../ledger/sql/cancels.ts'
import type { BatchSize } from '../operators/cancel-batch.ts'
import type { CancelOutcome } from '../operators/cancel-payouts.ts'
import { eachText } from './each-text.ts'

/** A line for each payout, the first ones in full. `be` is `is` once it is done, `would be` before. */
export const cancelText = (outcomes: readonly CancelOutcome[], be: 'is' | 'would be'): string =>
  eachText(
    outcomes,
    (outcome) => inWords(outcome, be),
    (rest) => {
      const stopped = rest.filter(isStopped).length
      return `and ${stopped} more ${be === 'is' ? 'are' : be} stopped; ${rest.length - stopped} more stay what they are`
    },
  )

/** What the ledger has of a batch, `open` of which had not ended, and what becomes of the rest. */
export function batchText(
  { batchId, taken, declared }: BatchSize,
  open: number,
  be: 'is' | 'would be',
): string {
  const all = declared === null ? 'no file of it was declared' : `its files declare ${declared}`
  const ended = Number(taken) - open
  return (
    `of batch ${batchId} ${taken} payouts are here, ${ended} of which had ended before; ${all}. ` +
    `What else comes of it within ${CANCELS_KEPT_DAYS} days ${be} cancelled as it comes`
  )
}

/** Something is to be done about it: it can be stopped, or a request to cancel it is kept. */
export const isHeeded = ({ kind }: CancelOutcome): boolean => kind !== 'too-late'

/** It is not sent any more, unless a person or a recovery finds that it must be. */
export const isStopped = (outcome: CancelOutcome): boolean =>
  isHeeded(outcome) && outcome.kind !== 'requested'

/** Completes "payout p-1 …". */
function inWords(outcome: CancelOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'cancelled':
      return `${be} cancelled: it was ${outcome.from} and never sent`
    case 'review':
      return `${be} put in review: it was ${outcome.from}, but an attempt was made that the gateway may hold, so a person decides`
    case 'after-recovery':
      return `${be} kept ${outcome.state}: the ledger was restored, and payoutd recover cancels it unless the gateway has it`
    case 'requested': {
      const kept = `the request ${be} kept`
      return outcome.state === 'review'
        ? `stays review: ${kept}, and a person decides about it, with payoutd payout resolve`
        : `stays ${outcome.state}: the gateway may have it, and its outcome is found out as ever; ${kept}, so that it is not sent once more`
    }
    case 'too-late':
      return `stays ${outcome.state}: it has ended already`
    case 'remembered':
      return `is not here: if a command with this payoutId comes within ${CANCELS_KEPT_DAYS} days, it ${be} cancelled as it comes`
  }
}
