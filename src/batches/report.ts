import { formatRupees } from '../domain/money.ts'
import { visible } from '../text/text.ts'
import type { PayrollTotals, Summary } from './file/check-file.ts'
import type { Doubts, Ingested } from './ingest.ts'
import type { OverlapComparison } from './overlap.ts'

/** Whether nothing is left for the sender of the file to do. */
export function isSettled(ingested: Ingested): boolean {
  const { kind } = ingested
  if (kind !== 'published' && kind !== 'published-before') return kind === 'dry-run'
  return ingested.cancelled === null && !mayBeLost(ingested.comparison)
}

/** Whether the ledger lacks what an earlier run published, and intake may yet store it. */
const mayBeLost = (comparison: OverlapComparison): boolean =>
  comparison.kind === 'compared' && comparison.lacked > 0 && comparison.behind > 0n

/** The result of an ingest, in words and figures for the sender of the file. Amounts in rupees. */
export function report(ingested: Ingested): string {
  if (ingested.kind === 'unreadable') {
    return [
      'Nothing was published: ingest cannot read the file.',
      ...ingested.faults.map((fault) => `- ${visible(fault)}`),
    ].join('\n')
  }
  if (ingested.kind === 'stopped') return 'Interrupted: this run published nothing.'
  const { summary, refusedFile } = ingested
  const isCancelled = cancellationIn(ingested) !== null
  return [
    table(summary, isCancelled),
    ...(refusedFile ? [`Refused rows and their faults: ${refusedFile}`] : []),
    verdict(ingested),
    ...('payoutsFile' in ingested
      ? [`The payoutId of every ${isCancelled ? 'valid row' : 'row to be paid'}: ${ingested.payoutsFile}`]
      : []),
  ].join('\n\n')
}

/** Who cancelled the batch, and why, as far as the ingest found out; null: nobody did. */
function cancellationIn(ingested: Ingested): string | null {
  if ('cancelled' in ingested) return ingested.cancelled
  return 'comparison' in ingested && ingested.comparison.kind === 'compared'
    ? ingested.comparison.cancelled
    : null
}

function verdict(ingested: Exclude<Ingested, { kind: 'unreadable' | 'stopped' }>): string {
  const { rows, amount } = ingested.summary.payable
  switch (ingested.kind) {
    case 'totals-differ':
      return [
        'Nothing was published: the totals differ.',
        ...ingested.differences.map((one) => `- ${one}`),
      ].join('\n')
    case 'rows-refused':
      return 'Nothing was published. Correct the rows and ingest the file again, or publish the others now with --publish-valid-rows.'
    case 'nothing-payable':
      return 'Nothing was published: no row can be paid.'
    case 'dry-run':
      return [
        `Dry run, nothing was published. It would be ${count(rows)} payouts of ${formatRupees(amount)} in all.`,
        ...doubtLines(ingested),
      ].join('\n')
    case 'batch-differs':
      return [
        `${nothing(ingested.published)}. Check this, and give --yes if it is what you want.`,
        ...doubtLines(ingested),
      ].join('\n')
    case 'published-before':
      return ingested.cancelled === null
        ? `Nothing was published: this file was already published for this batch. (To publish it again, which pays nobody twice, delete ${ingested.checkpoint}.)${earlierRun(ingested.comparison)}`
        : `Nothing was published: this file was already published for this batch. ${butCancelled(ingested.cancelled)}`
    case 'interrupted': {
      const sofar = `Interrupted: ${count(ingested.published)} of ${count(rows)} payouts are published.`
      return ingested.cancelled === null
        ? `${sofar} Run the same command again to continue.`
        : `${sofar} ${butCancelled(ingested.cancelled)}`
    }
    case 'published': {
      const all = `Published: ${count(rows)} payouts${earlier(ingested.resumedAfter)}.`
      return ingested.cancelled === null
        ? `${all} payoutd does not pay again what it already knows of this batch, even if the file differs now: payoutd payout list with this --batch shows such rows.${earlierRun(ingested.comparison)}`
        : `${all} ${butCancelled(ingested.cancelled)}`
    }
  }
}

const nothing = (before: number): string =>
  before > 0
    ? `Nothing more was published than the ${count(before)} payouts of an earlier run`
    : 'Nothing was published'

const cancelledText = (why: string): string =>
  `the batch was cancelled (${visible(why)}): payoutd cancels everything that now arrives for it, and never pays it. Use another --batch`

const butCancelled = (why: string): string =>
  `But ${cancelledText(why)}. payoutd payout list with this --batch shows what became of its payouts.`

/** What the publisher of the file should look at, a line each. */
export const doubtLines = ({ comparison, mayBeCutOff }: Doubts): string[] => [
  ...(mayBeCutOff
    ? [
        '- the last line of the file has no line end, so part of the file may be missing, even part of the last row: check it, ' +
          'or give the total of its sender with --expect-amount',
      ]
    : []),
  ...comparisonLines(comparison),
]

/** What a file and its batch have in common, a line each; none if the batch is new. */
export function comparisonLines(comparison: OverlapComparison): string[] {
  if (comparison.kind === 'unknown') return [unknownText(comparison.why)]
  const { batch, missing, same, changed, unpaid, fresh, behind, cancelled } = comparison
  const lines: [PayrollTotals, string][] = [
    [batch, 'of the batch are paid or may still be paid'],
    [same, 'of the file are in the ledger already, and are not paid again'],
    [changed, 'of the file are in the ledger with another amount or payee, and stay as they were'],
    [fresh, `of the file are new, and will be ${cancelled === null ? 'paid' : 'cancelled'}`],
    [missing, `of the batch are not in the file${cancelled === null ? ', and will still be paid' : ''}`],
  ]
  const isNew = batch.rows + same.rows + changed.rows === 0
  return [
    ...(isNew
      ? []
      : lines.map(([{ rows, amount }, what]) => `- ${count(rows)} of ${formatRupees(amount)} ${what}`)),
    ...(unpaid.rows > 0 ? [`- ${unpaidText(unpaid)}`] : []),
    ...(cancelled === null ? [] : [`- ${cancelledText(cancelled)}`]),
    ...(behind === 0n
      ? []
      : [
          `- payoutd has not stored ${behind} commands yet, and they may belong to this batch: payoutd doctor says what they wait for`,
        ]),
  ]
}

const unpaidText = ({ rows, amount }: PayrollTotals): string =>
  `${count(rows)} of ${formatRupees(amount)} of the file failed, or were cancelled or rejected: payoutd does not pay them under these references. payoutd payout list with this --batch shows why`

/** What the sender may not expect of the batch, and what became of the payouts of an earlier run. */
function earlierRun(comparison: OverlapComparison): string {
  if (comparison.kind === 'unknown') return `\n\n${unknownText(comparison.why)}`
  const { lacked, behind, unpaid, missing } = comparison
  return [
    ...(unpaid.rows > 0 ? [`\n\nBut ${unpaidText(unpaid)}.`] : []),
    ...(missing.rows > 0
      ? [
          `\n\n${count(missing.rows)} other payouts of the batch, of ${formatRupees(missing.amount)}, are not in the file. They are paid, or will be: payoutd payout cancel stops those that were not sent.`,
        ]
      : []),
    ...(lacked > 0 ? [lackedText(lacked, behind)] : []),
  ].join('')
}

function lackedText(lacked: number, behind: bigint): string {
  const these = `${count(lacked)} of the payouts that an earlier run published`
  return behind > 0n
    ? `\n\nBut payoutd does not have ${these}, and has not stored ${behind} commands yet: payoutd doctor says what they wait for. Run the same command again once it has stored them: if payouts were lost, it publishes them again, which pays nobody twice.`
    : `\n\nThe file was published again, because payoutd did not have ${these}: Kafka lost them, or they are dead letters. If they are missing again, payoutd dlq list shows why.`
}

const unknownText = (why: string): string => `It is unknown what the batch already has: ${why}`

const earlier = (rows: number): string => (rows > 0 ? `, of which ${count(rows)} by an earlier run` : '')

function table(
  { all, payable, refused, repeated, unreadableAmounts }: Summary,
  isCancelled: boolean,
): string {
  const note =
    unreadableAmounts > 0
      ? `  without the amounts of ${count(unreadableAmounts)}: in a row with too many or too few cells, unreadable, with paise or negative`
      : ''
  const lines: [string, PayrollTotals, string][] = [
    ['rows', all, ''],
    [isCancelled ? 'valid' : 'to be paid', payable, ''],
    ['refused', refused, note],
    [
      'repeated',
      repeated,
      repeated.rows > 0 ? `  the same payment twice${isCancelled ? '' : ', paid once'}` : '',
    ],
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

/** 1000000 → 10,00,000, in the Indian format. */
const count = (number: number): string => number.toLocaleString('en-IN')

/** The same for programs, in one line: amounts in paise, as text because a JSON number may not hold them exactly. */
export const reportJson = (ingested: Ingested): string =>
  JSON.stringify(ingested, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
