import { formatRupees } from "../payout/money.js";
import { isEnd } from "../payout/states.js";
import { table } from "../platform/table.js";
import { formatTime } from "./times.js";
const HEADINGS = ['PAYOUT', 'BATCH', 'ROW', 'AMOUNT', 'STATE', 'SINCE', 'NOT BEFORE', 'DEADLINE'];
/** A table with a line for each payout. */
export function listText(payouts) {
    const rows = payouts.map((payout) => [
        payout.payoutId,
        payout.batchId ?? '',
        payout.rowNumber === null ? '' : String(payout.rowNumber),
        formatRupees(payout.amount),
        inFull(payout.state, reasonOf(payout)),
        formatTime(payout.updatedAt),
        payout.notBefore === null ? '' : formatTime(payout.notBefore),
        isEnd(payout.state) ? '' : formatTime(payout.deadline),
    ]);
    const changed = payouts.filter(({ contradictions }) => contradictions > 0);
    return [
        ...table([HEADINGS, ...rows], ['', '', '>', '>', '', '', '', '']),
        ...changed.map(changedText),
    ].join('\n');
}
const changedText = ({ payoutId, rowNumber }) => `! ${rowNumber === null ? '' : `row ${rowNumber}, `}${payoutId}: came again with another beneficiary or amount, which is not paid (payoutd payout show ${payoutId})`;
const reasonOf = ({ reason, earlierPayoutId, earlierBatchId }) => {
    const earlier = earlierPayoutId ?? earlierBatchId;
    return earlier === null ? reason : `${reason}: ${earlier}`;
};
/** Some reasons are called as their state is. */
export const inFull = (state, reason) => reason === null || reason === state ? state : `${state} (${reason})`;
