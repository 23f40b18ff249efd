import { formatRupees } from '../domain/money.ts'
import { formatTime } from '../domain/times.ts'
import type { Shortage } from '../queries/sql/shortages.ts'

/** What waits for how much balance, and since when. */
export function shortageText({ merchantId, payoutId, since, missing, waiting, kept }: Shortage): string {
  const behind = waiting - 1
  const others = behind === 0 ? '' : `, and ${behind} ${behind === 1 ? 'waits' : 'wait'} behind it`
  const inDoubt =
    kept === 0n ? '' : ` (${formatRupees(kept)} is kept for payouts whose result is not known yet)`
  return `${merchantId} lacks ${formatRupees(missing)} for its payout ${payoutId} since ${formatTime(since)}${others}${inDoubt}`
}
