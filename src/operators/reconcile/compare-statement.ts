import type { Instant } from '../../domain/instant.ts'
import type { Paise } from '../../domain/money.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { isSameUtr, utrKey } from '../../domain/utr.ts'

/** A payment on a statement of the gateway or the bank. `row`: as a spreadsheet shows it. */
export type StatementLine = {
  row: number
  utr: string | null
  amount: Paise
  mchOrderNo: string | null
}

/** `paidAt`: when payoutd learned that it was paid; null: it is not. */
export type StatedPayout = Pick<Payout, 'payoutId' | 'orderNo' | 'state' | 'amount' | 'utr'> & {
  paidAt: Instant | null
}
/**
 * Another statement that may have a payout: that of another gateway account of the merchant, or, of what may have been paid within a
 * day of an end of the period or beyond, a neighbouring one.
 */
type OtherStatement = 'other-account' | 'neighbouring'
export type PaidPayout = Pick<Payout, 'payoutId' | 'amount' | 'utr'> & {
  otherStatement: OtherStatement | null
}

export type StatementKind =
  | 'not-in-statement'
  | 'only-in-statement'
  | 'not-paid-here'
  | 'paid-in-other-period'
  | 'statement-amount'
  | 'statement-utr'
  | 'statement-order'
  | 'utr-twice'
  | 'payout-twice'
  | 'utr-of-two-payouts'

/** `here` and `there` as in a Difference, times in milliseconds; `row` is null if the statement lacks the payment. */
export type StatementDifference = {
  kind: StatementKind
  row: number | null
  utr: string | null
  payoutId: string | null
  here: string
  there: string
  /** Only of `not-in-statement`, as in a PaidPayout. */
  otherStatement?: OtherStatement | null
}

type StatementPeriod = { from: Instant; to: Instant }
type Pair = { line: StatementLine; payout: StatedPayout }
/** A line whose UTR several payouts have, so that nobody can say which one it paid. */
type Dispute = { line: StatementLine; claimants: readonly StatedPayout[] }

/**
 * Every difference between the statement of a period and payoutd. `named` are the payouts that its lines name, whenever they
 * were paid and whatever their state. `missing` returns those of the paid payouts which the statement should have and does not.
 */
export function compareStatement(
  lines: readonly StatementLine[],
  named: readonly StatedPayout[],
  period: StatementPeriod,
): {
  differences: StatementDifference[]
  missing: (paid: readonly PaidPayout[]) => StatementDifference[]
} {
  const { pairs, disputes, strangers } = pair(lines, named)
  const found = [...pairs.map(({ payout }) => payout), ...disputes.flatMap(({ claimants }) => claimants)]
  const stated = new Set(found.map(({ payoutId }) => payoutId))
  return {
    differences: [
      ...utrTwice(lines),
      ...payoutTwice(pairs),
      ...utrOfTwoPayouts(disputes),
      ...onlyInStatement(strangers),
      ...notPaidHere(pairs),
      ...paidInOtherPeriod(pairs, period),
      ...amountsDiffer(pairs),
      ...utrsDiffer(pairs),
      ...ordersDiffer(pairs),
    ],
    missing: (paid) => notInStatement(paid, stated),
  }
}

/** A line belongs to the payout with its UTR, or else to the one with its order number. */
function pair(
  lines: readonly StatementLine[],
  named: readonly StatedPayout[],
): { pairs: Pair[]; disputes: Dispute[]; strangers: StatementLine[] } {
  const byUtr = Map.groupBy(named, ({ utr }) => utr && utrKey(utr))
  const byOrder = new Map(named.map((payout) => [payout.orderNo, payout]))
  const pairs: Pair[] = []
  const disputes: Dispute[] = []
  const strangers: StatementLine[] = []
  for (const line of lines) {
    const claimants = (line.utr !== null && byUtr.get(utrKey(line.utr))) || []
    const payout = claimants[0] ?? (line.mchOrderNo !== null && byOrder.get(line.mchOrderNo))
    if (claimants.length > 1) disputes.push({ line, claimants })
    else if (payout) pairs.push({ line, payout })
    else strangers.push(line)
  }
  return { pairs, disputes, strangers }
}

/** A statement cannot have one transfer twice: the second is another payment, or a mistake. */
function utrTwice(lines: readonly StatementLine[]): StatementDifference[] {
  const first = new Map<string, number>()
  return lines.flatMap(({ row, utr }) => {
    if (utr === null) return []
    const before = first.get(utrKey(utr))
    if (before === undefined) first.set(utrKey(utr), row)
    return before === undefined
      ? []
      : [{ kind: 'utr-twice', row, utr, payoutId: null, here: 'none', there: `row ${before} too` }]
  })
}

/** Two lines for one payout are two payments of it, or a mistake. `utrTwice` reports a repeated UTR. */
function payoutTwice(pairs: readonly Pair[]): StatementDifference[] {
  const first = new Map<string, number>()
  const utrs = new Set<string>()
  return pairs.flatMap(({ line, payout }) => {
    const before = first.get(payout.payoutId)
    if (before === undefined) first.set(payout.payoutId, line.row)
    const isRepeat = line.utr !== null && utrs.has(utrKey(line.utr))
    if (line.utr !== null) utrs.add(utrKey(line.utr))
    return before === undefined || isRepeat
      ? []
      : [about('payout-twice', line, payout, 'one payment', `row ${before} too`)]
  })
}

/** One transfer cannot have paid two payouts. */
const utrOfTwoPayouts = (disputes: readonly Dispute[]): StatementDifference[] =>
  disputes.flatMap(({ line, claimants: [first, ...others] }) =>
    others.map((payout) =>
      about('utr-of-two-payouts', line, payout, `${first?.payoutId} too`, line.amount.toString()),
    ),
  )

/** Money left, and none of our payouts explains it. */
const onlyInStatement = (strangers: readonly StatementLine[]): StatementDifference[] =>
  strangers.map(({ row, utr, amount }) => ({
    kind: 'only-in-statement',
    row,
    utr,
    payoutId: null,
    here: 'none',
    there: amount.toString(),
  }))

const notPaidHere = (pairs: readonly Pair[]): StatementDifference[] =>
  pairs.flatMap(({ line, payout }) =>
    payout.state === 'paid' ? [] : [about('not-paid-here', line, payout, payout.state, 'paid')],
  )

const DAY_MS = 86_400_000

/** The line may be a second payment. Within a day of the period it may be the only one, of which payoutd learned late. */
const paidInOtherPeriod = (pairs: readonly Pair[], { from, to }: StatementPeriod): StatementDifference[] =>
  pairs.flatMap(({ line, payout }) =>
    payout.paidAt === null || (payout.paidAt >= from - DAY_MS && payout.paidAt <= to + DAY_MS)
      ? []
      : [about('paid-in-other-period', line, payout, String(payout.paidAt), line.amount.toString())],
  )

const amountsDiffer = (pairs: readonly Pair[]): StatementDifference[] =>
  pairs.flatMap(({ line, payout }) =>
    payout.amount === line.amount
      ? []
      : [about('statement-amount', line, payout, payout.amount.toString(), line.amount.toString())],
  )

/** Found by the order number. A line without a UTR says nothing about it. */
const utrsDiffer = (pairs: readonly Pair[]): StatementDifference[] =>
  pairs.flatMap(({ line, payout }) =>
    line.utr === null || isSameUtr(payout.utr, line.utr)
      ? []
      : [about('statement-utr', line, payout, payout.utr ?? 'none', line.utr)],
  )

/** Found by the UTR. A line with the order number of another payout, or of none of ours, claims to have paid that one. */
const ordersDiffer = (pairs: readonly Pair[]): StatementDifference[] =>
  pairs.flatMap(({ line, payout }) =>
    line.mchOrderNo === null || payout.orderNo === line.mchOrderNo
      ? []
      : [about('statement-order', line, payout, payout.orderNo ?? 'none', line.mchOrderNo)],
  )

function notInStatement(paid: readonly PaidPayout[], stated: ReadonlySet<string>): StatementDifference[] {
  return paid
    .filter(({ payoutId }) => !stated.has(payoutId))
    .map(({ payoutId, utr, amount, otherStatement }) => ({
      kind: 'not-in-statement',
      row: null,
      utr,
      payoutId,
      here: amount.toString(),
      there: 'none',
      otherStatement,
    }))
}

const about = (
  kind: StatementKind,
  { row, utr }: StatementLine,
  { payoutId }: StatedPayout,
  here: string,
  there: string,
): StatementDifference => ({ kind, row, utr, payoutId, here, there })
