import { formatRupees } from '../domain/money.ts'
import { isEnd } from '../domain/payout/states.ts'
import { formatTime } from '../domain/times.ts'
import type { Listed } from '../queries/sql/payouts/list.ts'
import { count, table } from '../text/table.ts'

const HEADINGS = ['PAYOUT', 'BATCH', 'ROW', 'AMOUNT', 'STATE', 'SINCE', 'NOT BEFORE', 'DEADLINE']

/** A table with a line for each payout. */
export function listText(payouts: readonly Listed[]): string {
  const rows = payouts.map((payout) => [
    payout.payoutId,
    payout.batchId ?? '',
    payout.rowNumber === null ? '' : String(payout.rowNumber),
    formatRupees(payout.amount),
    inFull(payout.state, payout.reversedAt === null ? reasonOf(payout) : 'came back'),
    payout.since === null ? '' : formatTime(payout.since),
    payout.notBefore === null ? '' : formatTime(payout.notBefore),
    isEnd(payout.state) ? '' : formatTime(payout.deadline),
  ])
  const changed = payouts.filter(({ contradictions }) => contradictions > 0)
  return [
    ...table([HEADINGS, ...rows], ['', '', '>', '>', '', '', '', '']),
    ...changed.map(changedText),
  ].join('\n')
}

const changedText = ({ payoutId, rowNumber, contradictions }: Listed): string =>
  `! ${rowNumber === null ? '' : `row ${rowNumber}, `}${payoutId}: came again with other content${contradictions > 1 ? ` ${count(contradictions)} times` : ''}, which payoutd does not pay (payoutd payout show ${payoutId})`

const reasonOf = ({ reason, earlierPayoutId, earlierBatchId, earlierMerchantId }: Listed): string | null => {
  const earlier = earlierPayoutId ?? earlierBatchId
  const merchant = earlierMerchantId === null ? '' : ` of merchant ${earlierMerchantId}`
  return earlier === null ? reason : `${reason}: ${earlier}${merchant}`
}

/** Some reasons have the same name as their state. */
export const inFull = (state: string, reason: string | null): string =>
  reason === null || reason === state ? state : `${state} (${reason})`
