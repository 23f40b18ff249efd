import { CANCELS_KEPT_DAYS } from '../ledger/sql/cancels.ts'
import type { State } from '../payout/states.ts'
import type { BatchSize } from './cancel-batch.ts'
import type { CancelOutcome } from './cancel-payouts.ts'
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

/** It is not sent any more, unless a person or a recovery finds that it must be. */
export const isStopped = ({ kind }: CancelOutcome): boolean => kind !== 'too-late' && kind !== 'unknown'

/** Completes "payout p-1 …". */
function inWords(outcome: CancelOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'cancelled':
      return `${be} cancelled: it was ${outcome.from} and never sent`
    case 'review':
      return `${be} put in review: it was ${outcome.from}, but an attempt was made that the gateway may hold, so a person decides`
    case 'held':
      return `${be} held: the ledger was restored, and payoutd recover cancels it unless the gateway has it`
    case 'too-late':
      return `stays ${outcome.state}: ${tooLate(outcome.state)}`
    case 'unknown':
      return 'is gone from the ledger'
  }
}

function tooLate(state: State): string {
  switch (state) {
    case 'submitting':
    case 'unknown':
    case 'processing':
      return 'the gateway may have it, so it is too late to cancel; its outcome is found out as ever'
    case 'review':
      return 'a person decides about it, with payoutd payout resolve'
    case 'held':
    case 'queued':
    case 'paid':
    case 'failed':
    case 'rejected':
    case 'cancelled':
      return 'it has ended already'
  }
}
