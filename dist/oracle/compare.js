import { isEnd } from "../payout/states.js";
/** Everything in which the two do not say the same. Empty: they agree. */
export const compare = (here, there) => COMPARISONS.flatMap((find) => find(here, there) ?? []);
/** Called paid, and the gateway does not say so. A transfer that came back shows like this until it is confirmed. */
const paidHereOnly = (here, there) => here.state === 'paid' && (isOpen(there) || (there?.status === 'failed' && !here.reversed))
    ? { kind: 'paid-here-only', here: here.state, there: there?.status ?? 'none' }
    : null;
/** The money has left, for a payout that has ended without it. */
const paidThereOnly = (here, there) => there?.status === 'success' && endedUnpaid(here)
    ? { kind: 'paid-there-only', here: here.state, there: there.status }
    : null;
/** The money may leave yet, for a payout that has ended without it. */
const openThereOnly = (here, there) => there && isOpen(there) && endedUnpaid(here)
    ? { kind: 'open-there-only', here: here.state, there: there.status }
    : null;
/** The gateway knows more than it has told, or than was asked; a query settles it. */
const notHeardHere = (here, there) => there && !isEnd(here.state) && (hasEnded(there) || (isOpen(there) && !mayBeThere(here)))
    ? { kind: 'not-heard-here', here: here.state, there: there.status }
    : null;
/** The gateway has named the order before, or is said to have paid it, and now it has no such order. */
const missingThere = (here, there) => there === null && (here.state === 'paid' || here.state === 'processing' || here.agentpayOrderId !== null)
    ? { kind: 'missing-there', here: here.state, there: 'none' }
    : null;
/** A status that is not in the contract says nothing. */
const unlistedStatus = (here, there) => there?.status === 'unlisted' ? { kind: 'unlisted-status', here: here.state, there: there.status } : null;
const amountDiffers = (here, there) => there && there.amount !== here.amount ? differ('amount', here.amount, there.amount) : null;
/** Of what both call paid. What the gateway does not tell is not compared; so for the next two. */
const feeDiffers = (here, there) => bothPaid(here, there) && there?.fee != null && there.fee !== here.fee
    ? differ('fee', here.fee, there.fee)
    : null;
const utrDiffers = (here, there) => bothPaid(here, there) && there?.utr != null && there.utr !== here.utr
    ? differ('utr', here.utr, there.utr)
    : null;
const orderIdDiffers = (here, there) => here.agentpayOrderId !== null &&
    there?.agentpayOrderId != null &&
    there.agentpayOrderId !== here.agentpayOrderId
    ? differ('order-id', here.agentpayOrderId, there.agentpayOrderId)
    : null;
const COMPARISONS = [
    paidHereOnly,
    paidThereOnly,
    openThereOnly,
    notHeardHere,
    missingThere,
    unlistedStatus,
    amountDiffers,
    feeDiffers,
    utrDiffers,
    orderIdDiffers,
];
const isOpen = (there) => there?.status === 'pending' || there?.status === 'processing';
const hasEnded = (there) => there?.status === 'success' || there?.status === 'failed';
const bothPaid = (here, there) => here.state === 'paid' && there?.status === 'success';
const endedUnpaid = ({ state }) => isEnd(state) && state !== 'paid';
/** A payout of which it is no news that the gateway has it. */
const mayBeThere = ({ state }) => state === 'processing' || state === 'submitting' || state === 'review';
const differ = (kind, here, there) => ({
    kind,
    here: here?.toString() ?? 'none',
    there: there?.toString() ?? 'none',
});
