import { eachText } from "./each-text.js";
/** A line for each payout, the first ones in full. `be` is `is` once it is done, `would be` before. */
export const cancelText = (outcomes, be) => eachText(outcomes, (outcome) => inWords(outcome, be), (rest) => {
    const stopped = rest.filter(isStopped).length;
    return `and ${stopped} more ${be === 'is' ? 'are' : be} stopped; ${rest.length - stopped} more stay what they are`;
});
/** It is not sent any more, unless a person or a recovery finds that it must be. */
export const isStopped = ({ kind }) => kind !== 'too-late' && kind !== 'unknown';
/** Completes "payout p-1 …". */
function inWords(outcome, be) {
    switch (outcome.kind) {
        case 'cancelled':
            return `${be} cancelled: it was ${outcome.from} and never sent`;
        case 'review':
            return `${be} put in review: it was ${outcome.from}, but an attempt was made that the gateway may hold, so a person decides`;
        case 'held':
            return `${be} held: the ledger was restored, and payoutd recover cancels it unless the gateway has it`;
        case 'too-late':
            return `stays ${outcome.state}: ${tooLate(outcome.state)}`;
        case 'unknown':
            return 'is gone from the ledger';
    }
}
function tooLate(state) {
    switch (state) {
        case 'submitting':
        case 'unknown':
        case 'processing':
            return 'the gateway may have it, so it is too late to cancel; its outcome is found out as ever';
        case 'review':
            return 'a person decides about it, with payoutd payout resolve';
        case 'held':
        case 'queued':
        case 'paid':
        case 'failed':
        case 'rejected':
        case 'cancelled':
            return 'it has ended already';
    }
}
