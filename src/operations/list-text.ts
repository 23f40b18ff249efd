import { formatRupees } from '../payout/money.ts'
import { table } from '../platform/table.ts'
import type { Listed } from './sql/list.ts'
import { formatTime } from './times.ts'

const HEADINGS = ['PAYOUT', 'BATCH', 'ROW', 'AMOUNT', 'STATE', 'SINCE']

/** A table with a line for each payout. */
export function listText(payouts: readonly Listed[]): string {
  const rows = payouts.map(({ payoutId, batchId, rowNumber, amount, state, reason, updatedAt }) => [
    payoutId,
    batchId ?? '',
    rowNumber === null ? '' : String(rowNumber),
    formatRupees(amount),
    inFull(state, reason),
    formatTime(updatedAt),
  ])
  return table([HEADINGS, ...rows], ['', '', '>', '>', '', '']).join('\n')
}

/** Some reasons are called as their state is. */
export const inFull = (state: string, reason: string | null): string =>
  reason === null || reason === state ? state : `${state} (${reason})`
