import type { OrderReport } from '../../domain/evidence.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { isEnd } from '../../domain/payout/states.ts'
import { isSameUtr } from '../../domain/utr.ts'

/** One payout as payoutd has it. `reversed`: a person has confirmed that its transfer came back after it was paid. */
export type Here = Pick<Payout, 'state' | 'amount' | 'fee' | 'utr' | 'agentpayOrderId'> & {
  reversed: boolean
}
/** The same as the gateway answered about its order; null: that it has no such order. */
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

/** What both sides say of one thing, amounts in paise. `none`: nothing. */
export type Difference = { kind: DifferenceKind; here: string; there: string }

/** Everything in which the two do not say the same. Empty: they agree. */
export const compare = (here: Here, there: There): Difference[] =>
  COMPARISONS.flatMap((find) => find(here, there) ?? [])

type LedgerComparison = (here: Here, there: There) => Difference | null

/** Called paid, and the gateway does not say so. A transfer that came back shows like this until it is confirmed. */
const paidHereOnly: LedgerComparison = (here, there) =>
  here.state === 'paid' && (isOpen(there) || (there?.status === 'failed' && !here.reversed))
    ? { kind: 'paid-here-only', here: here.state, there: there?.status ?? 'none' }
    : null

/** The money has left, for a payout that has ended without it. */
const paidThereOnly: LedgerComparison = (here, there) =>
  there?.status === 'success' && endedUnpaid(here)
    ? { kind: 'paid-there-only', here: here.state, there: there.status }
    : null

/** A person has confirmed that the transfer came back, and the gateway says that it is paid. */
const reversedHereOnly: LedgerComparison = (here, there) =>
  here.reversed && there?.status === 'success'
    ? { kind: 'reversed-here-only', here: 'reversed', there: there.status }
    : null

/** The money may leave yet, for a payout that has ended without it. */
const openThereOnly: LedgerComparison = (here, there) =>
  there && isOpen(there) && endedUnpaid(here)
    ? { kind: 'open-there-only', here: here.state, there: there.status }
    : null

/** The gateway knows more than it has told, or than was asked; a query settles it. */
const notHeardHere: LedgerComparison = (here, there) =>
  there && !isEnd(here.state) && (hasEnded(there) || (isOpen(there) && !mayBeThere(here)))
    ? { kind: 'not-heard-here', here: here.state, there: there.status }
    : null

/** The gateway has named the order before, or is said to have paid it, and now it has no such order. */
const missingThere: LedgerComparison = (here, there) =>
  there === null && (here.state === 'paid' || here.state === 'processing' || here.agentpayOrderId !== null)
    ? { kind: 'missing-there', here: here.state, there: 'none' }
    : null

/** A status that is not in the contract says nothing. */
const unlistedStatus: LedgerComparison = (here, there) =>
  there?.status === 'unlisted' ? { kind: 'unlisted-status', here: here.state, there: there.status } : null

const amountDiffers: LedgerComparison = (here, there) =>
  there && there.amount !== here.amount ? differ('amount', here.amount, there.amount) : null

/** Of what both call paid. What the gateway does not tell is not compared; so for the next two. */
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
const endedUnpaid = ({ state }: Here): boolean => isEnd(state) && state !== 'paid'
/** A payout of which it is no news that the gateway has it. */
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
