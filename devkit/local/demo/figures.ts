import type { Summary } from '../../../src/batches/file/check-file.ts'
import { type Paise, sum } from '../../../src/domain/money.ts'
import { type ExpectedOutcome, isInReview, type Outcomes, timesPaid } from '../../oracle/outcome.ts'

/** Payouts and what they are about, in paise. */
export type Group = { payouts: ExpectedOutcome[]; amount: Paise }

/** The results of a file's rows. rows = accepted + rejected + duplicates. */
export type Figures = {
  rows: number
  accepted: number
  rejected: number
  duplicates: number
  paid: Group
  failed: Group
  /** Withdrawn, expired, or refused by payoutd itself: never sent. */
  neverSent: Group
  review: Group
  /** Accepted, but neither ended nor in review. */
  missing: Group
  fees: Paise
  /** Payouts that the gateway paid more than once. */
  paidTwice: number
}

export function figuresOf(summary: Summary, { payouts }: Outcomes): Figures {
  const group = (belongs: (payout: ExpectedOutcome) => boolean): Group => {
    const members = payouts.filter(belongs)
    return { payouts: members, amount: sum(members.map(({ asked }) => asked.amount)) }
  }
  const ended = (...statuses: string[]) => group(({ ends }) => statuses.includes(ends[0]?.status ?? ''))
  const paid = ended('PAID')
  return {
    rows: summary.all.rows,
    accepted: summary.payable.rows,
    rejected: summary.refused.rows,
    duplicates: summary.repeated.rows,
    paid,
    failed: ended('FAILED'),
    neverSent: ended('REJECTED', 'CANCELLED'),
    review: group(isInReview),
    missing: group((payout) => payout.ends.length === 0 && !isInReview(payout)),
    fees: sum(paid.payouts.flatMap(({ ends }) => ends[0]?.fee ?? [])),
    paidTwice: payouts.filter((payout) => timesPaid(payout) > 1).length,
  }
}

/** One line for programs; amounts in paise. */
export function figuresJson(figures: Figures, balanced: boolean, ms: number): string {
  const { rows, accepted, rejected, duplicates, paid, failed, neverSent, review, fees, paidTwice } = figures
  return JSON.stringify({
    rows,
    accepted,
    rejected,
    duplicates,
    paid: paid.payouts.length,
    failed: failed.payouts.length + neverSent.payouts.length,
    review: review.payouts.length,
    amountPaid: Number(paid.amount),
    fees: Number(fees),
    paidTwice,
    balanced,
    seconds: Math.round(ms / 100) / 10,
  })
}
