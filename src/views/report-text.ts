import type { Instant } from '../domain/instant.ts'
import { formatRupees, type Paise, paise } from '../domain/money.ts'
import { formatAge, formatTime } from '../domain/times.ts'
import type { BalanceChange } from '../operators/reconcile/balance-change.ts'
import type { Difference } from '../operators/reconcile/compare.ts'
import type { StatementDifference } from '../operators/reconcile/compare-statement.ts'
import type { Report } from '../operators/reconcile/report.ts'
import type { Differing } from '../operators/reconcile/sql/payouts.ts'
import type { Returned } from '../operators/reconcile/sql/reconciliations.ts'
import { count, table } from '../text/table.ts'

/** A report for a person to read. `now` is for ages. */
export function reportText(report: Report, now: Instant): string {
  const { run, listed, asked, firstTold, lastTold, totals } = report
  const answered = asked === listed ? '' : `, the gateway has answered about ${count(asked)}`
  return [
    `reconciliation ${run.reconciliationId} of ${run.merchantId}`,
    `payouts accepted from ${formatTime(run.periodFrom)} to ${formatTime(run.periodTo)}: ${count(listed)} were sent${answered}`,
    ...(firstTold === null || lastTold === null
      ? []
      : [`the gateway’s answers are from ${formatTime(firstTold)} to ${formatTime(lastTold)}`]),
    '',
    ...(asked > 0 ? [...totalsLines(report), ''] : []),
    ...differenceLines(report, now),
    ...(totals.open > 0 ? [`${count(totals.open)} have not ended on either side`] : []),
    ...(totals.settled > 0 ? [`${count(totals.settled)} that differed now agree`] : []),
    balanceText(report.balance),
    ...statementLines(report),
  ].join('\n')
}

function totalsLines({ totals, listed, asked }: Report): string[] {
  const { paidHere, amountHere, feesHere, paidThere, amountThere, feesThere } = totals
  const lines = table(
    [
      [asked === listed ? 'PAID' : `PAID, OF ${count(asked)} ANSWERED`, 'PAYOUTS', 'AMOUNT', 'FEES'],
      ['here', count(paidHere), formatRupees(amountHere), formatRupees(feesHere)],
      ['there', count(paidThere), formatRupees(amountThere), formatRupees(feesThere)],
    ],
    ['', '>', '>', '>'],
  )
  const { reversed, amountReversed } = totals
  if (reversed === 0) return lines
  return [...lines, `  ${count(reversed)} of those paid here came back: ${formatRupees(amountReversed)}`]
}

function differenceLines({ differing, listed, asked }: Report, now: Instant): string[] {
  if (differing.length === 0)
    return asked > 0 ? [`all ${count(asked)} ${asked === listed ? '' : 'answered '}agree`] : []
  const found = differing.flatMap((payout) =>
    payout.differences.map((difference) => ({ payout, difference })),
  )
  const kinds = [...new Set(found.map(({ difference }) => difference.kind))]
  return kinds.flatMap((kind) => {
    const ofKind = found.filter(({ difference }) => difference.kind === kind)
    const payouts = ofKind.map(({ payout }) => payout)
    return [
      `${kind}: ${count(payouts.length)}, ${formatRupees(amountOf(payouts))}`,
      ...table(
        [
          ['AGE', 'PAYOUT', 'ORDER', 'AMOUNT', 'HERE', 'THERE'],
          ...ofKind.map(({ payout: { payoutId, orderNo, amount, acceptedAt }, difference }) => [
            formatAge(now - acceptedAt),
            payoutId,
            orderNo,
            formatRupees(amount),
            ...bothSides(difference),
          ]),
        ],
        ['>', '', '', '>', '', ''],
      ),
      '',
    ]
  })
}

const amountOf = (payouts: readonly Differing[]): Paise =>
  paise(payouts.reduce((total, { amount }) => total + amount, 0n))

function bothSides({ kind, here, there }: Difference): [string, string] {
  return kind === 'amount' || kind === 'fee' ? [rupees(here), rupees(there)] : [here, there]
}

const rupees = (text: string): string => (/^\d+$/.test(text) ? formatRupees(paise(BigInt(text))) : text)

function balanceText(balance: BalanceChange): string {
  if (balance.kind === 'unknown') {
    return 'balance: unknown how it moved, because payoutd lacks the balance at one end of the period. Each run queries it, so the next run can compare from here on'
  }
  if (balance.kind === 'untold') {
    return 'balance: the gateway did not return it when this run began; the next run queries it again'
  }
  const { from, to, paid, returned, gap, allowance, rest } = balance
  const left = from.balance - to.balance
  const by = left < 0n ? `it grew by ${formatRupees(paise(-left))}` : `${formatRupees(paise(left))} left`
  const moved = `balance: ${formatRupees(from.balance)} at ${formatTime(from.at)}, ${formatRupees(to.balance)} at ${formatTime(to.at)}; ${by}; payouts that ended took ${formatRupees(paid)}${returnedText(returned)}`
  const where = eitherOf([
    'in flight',
    'in review',
    'just failed',
    ...(gap > 0n && returned.early > 0n ? ['back before the first balance'] : []),
    ...(gap > 0n && returned.late > 0n ? ['back only after the second balance'] : []),
  ])
  const allowed = `${formatRupees(allowance)} were ${where}`
  switch (balance.kind) {
    case 'explained':
      return `${moved}, which explains it`
    case 'in-flight':
      return gap > 0n
        ? `${moved}; up to ${formatRupees(gap)} more may be ${where} (${formatRupees(allowance)} were)`
        : `${moved}; up to ${formatRupees(paise(-gap))} of it may have left before (${allowed})`
    case 'more':
      return `${moved}; ${allowed} before; another ${formatRupees(rest)} came in, such as payins, a top-up or a transfer that came back late or is not confirmed`
    case 'missing':
      return `${moved}; ${allowed}; ANOTHER ${formatRupees(rest)} LEFT, and no payout explains it`
  }
}

const eitherOf = (texts: readonly string[]): string => `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`

function returnedText({ reversals, amount }: Returned): string {
  if (reversals === 0) return ''
  return `; ${formatRupees(amount)} came back in ${count(reversals)} ${reversals === 1 ? 'reversal' : 'reversals'}`
}

function statementLines({ statement }: Report): string[] {
  if (!statement) return []
  const { lines, amount, differences } = statement
  const title = `statement: ${count(lines)} lines, ${formatRupees(amount)}`
  if (differences.length === 0)
    return [`${title}; all of it agrees, and it has every payout that was paid in the period`]
  const rows = differences
    .toSorted((a, b) => a.kind.localeCompare(b.kind))
    .map((each) => [
      each.kind,
      each.row === null ? '' : String(each.row),
      each.utr ?? '',
      each.payoutId ?? '',
      ...statedSides(each),
    ])
  return [
    '',
    title,
    ...table([['KIND', 'ROW', 'UTR', 'PAYOUT', 'HERE', 'THERE'], ...rows], ['', '>', '', '', '', '']),
  ]
}

const OTHER_STATEMENTS = {
  'other-account': 'it was paid at another account, whose statement should have it',
  neighbouring: 'but it may be in a neighbouring statement',
}

function statedSides({ kind, here, there, otherStatement }: StatementDifference): [string, string] {
  if (otherStatement) return [rupees(here), `${there}, ${OTHER_STATEMENTS[otherStatement]}`]
  if (kind === 'paid-in-other-period')
    return [
      `paid at ${formatTime(Number(here))}, in another period: look whether it was paid twice`,
      rupees(there),
    ]
  return kind === 'statement-utr' || kind === 'statement-order'
    ? [here, there]
    : [rupees(here), rupees(there)]
}
