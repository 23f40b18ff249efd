import { holdText } from './hold-text.ts'
import { inFull } from './list-text.ts'
import type { ReleaseOutcome } from './release-payouts.ts'
import { formatTime } from './times.ts'

/** So many payouts are told of one by one. */
const TOLD = 20

/** A line for each payout, the first ones in full. `be` is `is` once it is done, `would be` before. */
export function releaseText(outcomes: readonly ReleaseOutcome[], be: 'is' | 'would be'): string {
  const lines = outcomes.slice(0, TOLD).map((outcome) => `payout ${outcome.payoutId} ${inWords(outcome, be)}`)
  const more = outcomes.slice(TOLD)
  if (more.length === 0) return lines.join('\n')
  const released = more.filter(isReleased).length
  return [
    ...lines,
    `and ${released} more ${be} released; ${more.length - released} more stay what they are`,
  ].join('\n')
}

export const isReleased = ({ kind }: ReleaseOutcome): boolean => kind === 'queued' || kind === 'scheduled'

function inWords(outcome: ReleaseOutcome, be: 'is' | 'would be'): string {
  switch (outcome.kind) {
    case 'queued':
      return `${be} queued; it was held because ${outcome.holds.map(holdText).join(', and because ')}`
    case 'scheduled':
      return `${be} released, and waits until ${formatTime(outcome.paysAt)}; it was held because ${outcome.holds.map(holdText).join(', and because ')}`
    case 'expired':
      return `stays held: its deadline passed at ${formatTime(outcome.deadline)}, so it is cancelled; pay it under a new payoutId`
    case 'not-waiting':
      return `stays ${inFull(outcome.state, outcome.reason)}: it waits for no release`
    case 'unknown':
      return 'is gone from the ledger'
  }
}
