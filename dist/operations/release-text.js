import { formatRupees, sum } from "../payout/money.js";
import { eachText } from "./each-text.js";
import { holdText } from "./hold-text.js";
import { inFull } from "./list-text.js";
import { formatTime } from "./times.js";
/**
 * A line for each payout, the first ones in full and with what was asked for where `askedFor` has that, and how much
 * they are together. `be` is `is` once it is done, `would be` before.
 */
export function releaseText(outcomes, be, askedFor = new Map()) {
    const are = be === 'is' ? 'are' : be;
    const lines = eachText(outcomes, (outcome) => {
        const asked = askedFor.get(outcome.payoutId);
        return inWords(outcome, be) + (asked === undefined ? '' : `\n  ${asked}`);
    }, (rest) => {
        const released = rest.filter(isReleased).length;
        return `and ${released} more ${are} released; ${rest.length - released} more stay what they are`;
    });
    const released = outcomes.filter(isReleased);
    if (released.length < 2)
        return lines;
    const together = formatRupees(sum(released.map(({ amount }) => amount)));
    return `${lines}\n${released.length} payouts, ${together} together, ${are} released`;
}
export const isReleased = (outcome) => outcome.kind === 'queued' || outcome.kind === 'scheduled';
function inWords(outcome, be) {
    switch (outcome.kind) {
        case 'queued':
            return `${be} queued; ${wasHeld(outcome)}`;
        case 'scheduled':
            return `${be} released, and waits until ${formatTime(outcome.paysAt)}; ${wasHeld(outcome)}`;
        case 'expired':
            return `stays held: its deadline passed at ${formatTime(outcome.deadline)}, so it is cancelled; pay it under a new payoutId`;
        case 'not-waiting': {
            const { state, reason, released } = outcome;
            const why = released
                ? `it was released at ${formatTime(released.at)}, by ${released.note}`
                : 'it waits for no release';
            return `stays ${inFull(state, reason)}: ${why}`;
        }
        case 'unknown':
            return 'is gone from the ledger';
    }
}
const wasHeld = ({ holds }) => `it was held because ${holds.map(holdText).join(', and because ')}`;
