import { formatRupees } from '../payout/money.ts'
import type { Summary, Totals } from './check.ts'
import type { Ingested } from './ingest.ts'

/** Whether nothing is left for the sender of the file to do. */
export function isSettled({ kind }: Ingested): boolean {
  return kind === 'published' || kind === 'published-before' || kind === 'dry-run'
}

/** What an ingest came to, in words and figures for the person who sent the file. Amounts in rupees. */
export function report(ingested: Ingested): string {
  if (ingested.kind === 'unreadable') {
    return [
      'The file cannot be read, nothing was published.',
      ...ingested.faults.map((fault) => `- ${fault}`),
    ].join('\n')
  }
  if (ingested.kind === 'stopped')
    return 'Interrupted while the file was being checked: nothing was published.'
  const { summary, refusedFile } = ingested
  return [
    table(summary),
    ...(refusedFile ? [`The refused rows, and what is wrong with them: ${refusedFile}`] : []),
    verdict(ingested),
    ...('payoutsFile' in ingested
      ? [`The payoutId of every row that is to be paid: ${ingested.payoutsFile}`]
      : []),
  ].join('\n\n')
}

function verdict(ingested: Exclude<Ingested, { kind: 'unreadable' | 'stopped' }>): string {
  const { rows, amount } = ingested.summary.payable
  switch (ingested.kind) {
    case 'totals-differ':
      return [
        'The totals differ, nothing was published.',
        ...ingested.differences.map((one) => `- ${one}`),
      ].join('\n')
    case 'rows-refused':
      return 'Nothing was published. Correct the rows and ingest the file again, or publish the others now with --publish-valid-rows.'
    case 'nothing-payable':
      return 'Nothing was published: no row can be paid.'
    case 'dry-run':
      return `Dry run, nothing was published. It would be ${count(rows)} payouts of ${formatRupees(amount)} in all.`
    case 'published-before':
      return `This file was published for this batch before, nothing was published now. (To publish it once more, which pays nobody twice, delete ${ingested.checkpoint}.)`
    case 'interrupted':
      return `Interrupted: ${count(ingested.published)} of ${count(rows)} payouts are published. The same command goes on from there.`
    case 'published':
      return `Published: ${count(rows)} payouts${earlier(ingested.resumedAfter)}. What payoutd knows already under this batch is not paid again, even where the file says something else now: payoutd payout list with this --batch names such rows.`
  }
}

const earlier = (rows: number): string => (rows > 0 ? `, of which ${count(rows)} by an earlier run` : '')

function table({ all, payable, refused, repeated, unreadableAmounts }: Summary): string {
  const note =
    unreadableAmounts > 0
      ? `  without the amounts of ${count(unreadableAmounts)}, unreadable, with paise or negative`
      : ''
  const lines: [string, Totals, string][] = [
    ['rows', all, ''],
    ['to be paid', payable, ''],
    ['refused', refused, note],
    ['repeated', repeated, repeated.rows > 0 ? '  the same payment twice: paid once' : ''],
  ]
  const figures = lines.map(([, { rows, amount }]) => [count(rows), formatRupees(amount)] as const)
  const widest = (column: 0 | 1) => Math.max(...figures.map((figure) => figure[column].length))
  return lines
    .map(([name, , note], i) => {
      const [rows, amount] = figures[i] ?? ['', '']
      return `${name.padEnd(12)}${rows.padStart(widest(0))}  ${amount.padStart(widest(1))}${note}`
    })
    .join('\n')
}

/** 1000000 → 10,00,000, as India reads numbers. */
const count = (number: number): string => number.toLocaleString('en-IN')

/** The same for programs, in one line: amounts in paise, as text because a JSON number need not hold them. */
export const reportJson = (ingested: Ingested): string =>
  JSON.stringify(ingested, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
