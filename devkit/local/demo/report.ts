import type { RefusedRow } from '../../../src/batches/file/check-file.ts'
import { formatRupees, type Paise } from '../../../src/domain/money.ts'
import { count, table } from '../../../src/text/table.ts'
import type { Discrepancy } from '../../oracle/check.ts'
import type { GatewayBooks, GatewayOrder } from '../../oracle/gateway-books.ts'
import type { ExpectedOutcome } from '../../oracle/outcome.ts'
import type { PublishedRecords } from '../../oracle/published-messages.ts'
import type { Phases } from './bars.ts'
import type { Expectation } from './expectations.ts'
import type { Figures, Group } from './figures.ts'
import { seconds } from './steps.ts'
import { storyOf } from './story.ts'

export type ReportInput = {
  file: string
  figures: Figures
  refused: readonly RefusedRow[]
  /** The list of refused rows in full. */
  refusedFile: string | null
  payouts: readonly ExpectedOutcome[]
  expectations: readonly Expectation[]
  told: PublishedRecords
  books: GatewayBooks
  orders: readonly GatewayOrder[]
  discrepancies: readonly Discrepancy[]
  phases: Phases
}

/** The result of a demo, for the person who watched it. */
export function report(input: ReportInput): string {
  const sections = [
    figuresSection(input),
    rejectedSection(input),
    reasonsSection('FAILED', input.figures.failed),
    reasonsSection('NEVER SENT', input.figures.neverSent),
    reasonsSection('IN REVIEW', input.figures.review),
    plantedSection(input),
    booksSection(input),
    messagesSection(input),
    section(
      'TIME',
      table(
        input.phases.map(({ name, ms }) => [name, seconds(ms)]),
        ['', '>'],
      ),
    ),
    verdict(input),
  ]
  return sections.filter((each) => each !== '').join('\n\n')
}

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : [title, ...lines].join('\n')

function figuresSection({ file, figures }: ReportInput): string {
  const { rows, accepted, rejected, duplicates, paid, failed, neverSent, review, missing, fees } = figures
  const group = (name: string, { payouts, amount }: Group) =>
    payouts.length > 0 ? [[`  ${name}`, count(payouts.length), formatRupees(amount), '']] : []
  const all = [paid, failed, neverSent, review, missing].reduce(
    (sum, { amount }) => sum + amount,
    0n,
  ) as Paise
  const cells = [
    ['rows', count(rows), '', ''],
    ['refused', count(rejected), '', ''],
    ['repeated', count(duplicates), '', ''],
    ['to be paid', count(accepted), formatRupees(all), ''],
    ['  paid', count(paid.payouts.length), formatRupees(paid.amount), `and ${formatRupees(fees)} in fees`],
    ...group('failed', failed),
    ...group('never sent', neverSent),
    ...group('in review', review),
    ...group('without an end', missing),
  ]
  return section(file, table(cells, ['', '>', '>', '']))
}

const MOST_LISTED = 60

function rejectedSection({ refused, refusedFile }: ReportInput): string {
  const cells = refused
    .slice(0, MOST_LISTED)
    .flatMap(({ row, faults }) =>
      faults.map(({ column, message, found }, i) => [
        i === 0 ? `row ${row}` : '',
        column || 'columns',
        /[^•]/.test(found) ? `${message} (found: ${oneLine(found)})` : message,
      ]),
    )
  const more = refused.length - MOST_LISTED
  const rest = more > 0 ? [`  and ${count(more)} more, in ${refusedFile}`] : []
  return section('REFUSED', [...table(cells, ['>', '', '']), ...rest])
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Groups payouts by the reason given for their state. */
function reasonsSection(title: string, { payouts }: Group): string {
  const reasons = Map.groupBy(
    payouts,
    ({ ends, events }) => ends[0]?.errors[0]?.message ?? events.at(-1)?.reason ?? '',
  )
  const cells = [...reasons].map(([reason, members]) => [count(members.length), reason, rowList(members)])
  return section(title, table(cells, ['>', '', '']))
}

/** What was planted among the accepted rows, and what became of it. */
function plantedSection({ expectations, payouts, told }: ReportInput): string {
  const byRow = new Map(payouts.map((payout) => [payout.asked.row, payout]))
  const accepted = expectations
    .filter(({ row }) => byRow.has(row))
    .sort((a, b) => (a.why < b.why ? -1 : a.why > b.why ? 1 : a.row - b.row))
  const cells = [...Map.groupBy(accepted, ({ why }) => why)].flatMap(([why, members]) => {
    const stories = Map.groupBy(members, ({ row }) =>
      storyOf(byRow.get(row) as ExpectedOutcome, told.anomalies),
    )
    return [...stories].map(([story, same], i) => [count(same.length), i === 0 ? why : '', story])
  })
  return section('FAULTS AT THE GATEWAY, AND HOW THE PAYOUTS ENDED', table(cells, ['>', '', '']))
}

function booksSection({ figures, books, orders }: ReportInput): string {
  const paidThere = orders.reduce((times, order) => times + order.timesPaid, 0)
  const cells = [
    ['', 'payoutd', 'gateway'],
    ['payouts paid', count(figures.paid.payouts.length), count(paidThere)],
    ['amount paid', formatRupees(figures.paid.amount), formatRupees(books.accounts.paidOut)],
    ['fees', formatRupees(figures.fees), formatRupees(books.accounts.fees)],
    ['paid more than once', '', count(figures.paidTwice)],
    ['sum of its ledger', '', formatRupees(books.everything.sum)],
  ]
  return section("THE GATEWAY'S LEDGER", table(cells, ['', '>', '>']))
}

function messagesSection({ told: { results, events, anomalies } }: ReportInput): string {
  const repeats = (all: readonly { eventId: string }[]) =>
    all.length - new Set(all.map(({ eventId }) => eventId)).size
  const cells = [
    ['payout.results', count(results.length), `${count(repeats(results))} repeated`],
    ['payout.events', count(events.length), `${count(repeats(events))} repeated`],
    ['payout.anomalies', count(anomalies.length), ''],
  ]
  return section('PUBLISHED', table(cells, ['', '>', '']))
}

function verdict({ discrepancies }: ReportInput): string {
  if (discrepancies.length === 0) {
    return 'BALANCED: one end for every payout, each as the gateway has it, and nobody was paid twice.'
  }
  const cells = discrepancies.slice(0, MOST_LISTED).map(({ kind, who, detail }) => [kind, who, detail])
  const more = discrepancies.length - MOST_LISTED
  const rest = more > 0 ? [`  and ${count(more)} more`] : []
  return section(`NOT BALANCED: ${count(discrepancies.length)} differences`, [
    ...table(cells, ['', '', '']),
    ...rest,
  ])
}

const MOST_ROWS = 8

const rowList = (payouts: readonly ExpectedOutcome[]): string => {
  const rows = payouts.slice(0, MOST_ROWS).map(({ asked }) => asked.row)
  return `row ${rows.join(', ')}${payouts.length > MOST_ROWS ? ', …' : ''}`
}
