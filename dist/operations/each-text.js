/** So many payouts are told of one by one. */
export const TOLD = 20;
/** A line for each payout, the first ones in full; `others` sums up the rest. */
export function eachText(outcomes, inWords, others) {
    const lines = outcomes.slice(0, TOLD).map((outcome) => `payout ${outcome.payoutId} ${inWords(outcome)}`);
    const rest = outcomes.slice(TOLD);
    return [...lines, ...(rest.length > 0 ? [others(rest)] : [])].join('\n');
}
