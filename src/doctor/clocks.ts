import type { Instant } from '../platform/running/clock.ts'
import { type Finding, good, wrong } from './examine.ts'

/** What another clock showed (up to `resolutionMs` later), while ours went from `before` to `after`. */
export type ClockReading = { before: Instant; after: Instant; shown: Instant; resolutionMs: number }

/** Beyond this, times in evidence mislead the reader, and a gateway may refuse our reqTime. */
const TOLERATED_MS = 2_000

/** By how much the other clock is certainly ahead of ours, in ms; negative: behind. */
export function skewMs({ before, after, shown, resolutionMs }: ClockReading): number {
  if (shown > after) return shown - after
  if (shown + resolutionMs < before) return shown + resolutionMs - before
  return 0
}

/** `whose` begins the sentence: `the database's clock`. */
export function checkClock(whose: string, reading: ClockReading): Finding {
  const skew = skewMs(reading)
  if (Math.abs(skew) <= TOLERATED_MS) return good(`${whose} agrees with this machine's`)
  const seconds = (Math.abs(skew) / 1000).toFixed(1)
  return wrong(
    `${whose} is ${seconds} s ${skew > 0 ? 'ahead of' : 'behind'} this machine's`,
    'set both by NTP, and check which of them is wrong',
  )
}
