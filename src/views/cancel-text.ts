import { CANCELS_KEPT_DAYS } from '../ledger/sql/cancels.ts'
import type { BatchSize } from '../operators/cancel-batch.ts'
import type { CancelOutcome } from '../operators/cancel-payouts.ts'
import { COUNTED_IN_EACH } from '../queries/batch-totals.ts'
import { eachText } from './each-text.ts'

/** A line for each payout, the first ones in full. `be` is `is` after the act, `would be` before. */
export const cancelText = (outcomes: readonly CancelOutcome[], be: 'is' | 'would be'): string =>
  eachText(
    outcomes,
    (outcome) => inWords(outcome, be),
    (rest) => {
      const are = be === 'is' ? 'are' : be
      const more = (kinds: readonly CancelOutcome['kind'][], what: string) => {
        const count = rest.filter(({ kind }) => kinds.includes(kind)).length
        return count > 0 ? [`${count} more ${what}`] : []
      }
      return `and ${[
        ...more(['cancelled', 'rejected', 'review'], `${are} stopped`),
        ...more(['after-recovery'], `${are} left to the recovery of their merchant`),
        ...more(['requested'], `may be at the gateway: the cancel request ${be} recorded`),
        ...more(['remembered'], `are not in the ledger: the request ${be} remembered`),
        ...more(['too-late'], 'had already ended'),
      ].join('; ')}`
    },
  )

/** What the ledger has of a batch, `open` of which had not ended, and what happens to the rest. */
export function batchText(
  { batchId, taken, paid, files, declared }: BatchSize,
  open: number,
  be: 'is' | 'would be',
): string {
  const all =
    declared === null
      ? 'no file declared its totals'
      : `its files declare ${declared}${files > 1 ? ` ${COUNTED_IN_EACH}` : ''}`
  const ended = Number(taken) - open
  const ofThesePaid = paid > 0n ? `, ${paid} of these as paid` : ''
  return (
    `the ledger has ${taken} payouts of batch ${batchId}, and ${ended} of them had already ended${ofThesePaid}; ${all}. ` +
    `Other payouts of the batch that arrive within ${CANCELS_KEPT_DAYS} days ${be === 'is' ? 'are' : be} cancelled as well${IF_FENCED}`
  )
}

/** The recovery decides about payouts that arrive while the merchant is fenced. */
const IF_FENCED = '; while the merchant is fenced, its recovery does so'

/** The request has an effect: the payout can be stopped, or payoutd keeps the request. */
export const isHeeded = ({ kind }: CancelOutcome): boolean => kind !== 'too-late'

/** It was there and is not sent any more, unless a person or a recovery finds that it must be. */
export const isStopped = (outcome: CancelOutcome): boolean =>
  isHeeded(outcome) && outcome.kind !== 'requested' && outcome.kind !== 'remembered'

/** The ledger has a payout of the batch, or a file declared it. */
export const isKnownBatch = ({ taken, declared }: BatchSize): boolean => taken > 0n || declared !== null

/** Completes "payout p-1 …". */
function inWords(outcome: CancelOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'cancelled':
      return `${be} cancelled: it was ${outcome.from}, and payoutd never sent it`
    case 'rejected':
      return `${be} rejected: its command breaks a rule, and payoutd never sent it`
    case 'review':
      return `${be} put in review: it was ${outcome.from}, but the gateway may have an earlier attempt, so a person decides`
    case 'after-recovery':
      return `${be} left ${outcome.state} because its merchant is fenced: payoutd recover cancels it unless the gateway has it`
    case 'requested': {
      const kept = `the cancel request ${be} recorded`
      return outcome.state === 'review'
        ? `stays in review: ${kept}, and a person decides about it with payoutd payout resolve`
        : `stays ${outcome.state}: the gateway may have it, so payoutd still finds out its outcome; ${kept}, so that payoutd does not send it again`
    }
    case 'too-late':
      return `stays ${outcome.state}: it has already ended`
    case 'remembered':
      return `is not in the ledger, and nothing ${be} cancelled now: the request ${be} remembered for ${CANCELS_KEPT_DAYS} days and cancels what arrives under this payoutId${IF_FENCED}. If you expected it here, compare the id with payoutd payout list`
  }
}
