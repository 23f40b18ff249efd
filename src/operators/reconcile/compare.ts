import type { OrderReport } from '../../domain/evidence.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { endedUnpaid, isEnd } from '../../domain/payout/states.ts'
import { isSameUtr } from '../../domain/utr.ts'

/** One payout in payoutd's ledger. `reversed`: a person has confirmed that its transfer came back after it was paid. */
export type Here = Pick<Payout, 'state' | 'amount' | 'fee' | 'utr' | 'agentpayOrderId'> & {
  reversed: boolean
}
/** The same from the gateway's answer about its order; null: it has no such order. */
export type There = Omit<OrderReport, 'mchOrderNo' | 'errorMessage' | 'exchange'> | null

export type DifferenceKind =
  | 'paid-here-only'
  | 'paid-there-only'
  | 'reversed-here-only'
  | 'open-there-only'
  | 'not-heard-here'
  | 'missing-there'
  | 'unlisted-status'
  | 'amount'
  | 'fee'
  | 'utr'
  | 'order-id'

/** What each side says about one thing, amounts in paise. `none`: nothing. */
export type Difference = { kind: DifferenceKind; here: string; there: string }

/** Every difference between the two. Empty: they agree. */
export const compare = (here: Here, there: There): Difference[] =>
  COMPARISONS.flatMap((find) => find(here, there) ?? [])

type LedgerComparison = (here: Here, there: There) => Difference | null

/** Paid here, but not at the gateway. A transfer that came back looks like this until a person confirms it. */
const paidHereOnly: LedgerComparison = (here, there) =>
  here.state === 'paid' && (isOpen(there) || (there?.status === 'failed' && !here.reversed))
    ? { kind: 'paid-here-only', here: here.state, there: there?.status ?? 'none' }
    : null

/** The money has left, but the payout has ended here without a payment. */
const paidThereOnly: LedgerComparison = (here, there) =>
  there?.status === 'success' && endedUnpaid(here.state)
    ? { kind: 'paid-there-only', here: here.state, there: there.status }
    : null

/** A person has confirmed that the transfer came back, but the gateway reports it as paid. */
const reversedHereOnly: LedgerComparison = (here, there) =>
  here.reversed && there?.status === 'success'
    ? { kind: 'reversed-here-only', here: 'reversed', there: there.status }
    : null

/** The money may still leave, but the payout has ended here without a payment. */
const openThereOnly: LedgerComparison = (here, there) =>
  there && isOpen(there) && endedUnpaid(here.state)
    ? { kind: 'open-there-only', here: here.state, there: there.status }
    : null

/** The gateway knows more than payoutd has received; a query settles the payout. */
const notHeardHere: LedgerComparison = (here, there) =>
  there && !isEnd(here.state) && (hasEnded(there) || (isOpen(there) && !mayBeThere(here)))
    ? { kind: 'not-heard-here', here: here.state, there: there.status }
    : null

/** The gateway named the order before, or the payout counts as paid, and now the gateway has no such order. */
const missingThere: LedgerComparison = (here, there) =>
  there === null && (here.state === 'paid' || here.state === 'processing' || here.agentpayOrderId !== null)
    ? { kind: 'missing-there', here: here.state, there: 'none' }
    : null

/** A status outside the contract says nothing. */
const unlistedStatus: LedgerComparison = (here, there) =>
  there?.status === 'unlisted' ? { kind: 'unlisted-status', here: here.state, there: there.status } : null

const amountDiffers: LedgerComparison = (here, there) =>
  there && there.amount !== here.amount ? differ('amount', here.amount, there.amount) : null

/** For payouts that both sides call paid. Skips what the gateway does not report; so do the next two. */
const feeDiffers: LedgerComparison = (here, there) =>
  bothPaid(here, there) && there?.fee != null && there.fee !== here.fee
    ? differ('fee', here.fee, there.fee)
    : null

const utrDiffers: LedgerComparison = (here, there) =>
  bothPaid(here, there) && there?.utr != null && !isSameUtr(there.utr, here.utr)
    ? differ('utr', here.utr, there.utr)
    : null

const orderIdDiffers: LedgerComparison = (here, there) =>
  here.agentpayOrderId !== null &&
  there?.agentpayOrderId != null &&
  there.agentpayOrderId !== here.agentpayOrderId
    ? differ('order-id', here.agentpayOrderId, there.agentpayOrderId)
    : null

const COMPARISONS: readonly LedgerComparison[] = [
  paidHereOnly,
  paidThereOnly,
  reversedHereOnly,
  openThereOnly,
  notHeardHere,
  missingThere,
  unlistedStatus,
  amountDiffers,
  feeDiffers,
  utrDiffers,
  orderIdDiffers,
]

const isOpen = (there: There): boolean => there?.status === 'pending' || there?.status === 'processing'
const hasEnded = (there: There): boolean => there?.status === 'success' || there?.status === 'failed'
const bothPaid = (here: Here, there: There): boolean => here.state === 'paid' && there?.status === 'success'
/** It is no news that the gateway has this payout. */
const mayBeThere = ({ state }: Here): boolean =>
  state === 'processing' || state === 'submitting' || state === 'review'

const differ = (
  kind: DifferenceKind,
  here: bigint | string | null,
  there: bigint | string | null,
): Difference => ({
  kind,
  here: here?.toString() ?? 'none',
  there: there?.toString() ?? 'none',
})
