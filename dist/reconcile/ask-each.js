import { pause } from "../platform/lifecycle.js";
import { Pace } from "./pace.js";
/** Queries under way at once. */
export const AT_ONCE = 8;
const PAGE = 200;
/** Answers without knowledge, one after the other, that end the asking. */
const SILENCE = 25;
/** Asks the gateway about one payout after the other, at most so many in a second, until all are told or passes end. */
export async function askEach(asking) {
    const { ask, passes, betweenMs, signal } = asking;
    const pace = new Pace(asking.ratePerSecond, asking.clock);
    let silence = 0;
    for (let pass = 1;; pass++) {
        const waiting = each(asking);
        let untold = 0;
        const worker = async () => {
            for (;;) {
                await pace.turn(signal);
                if (signal.aborted || silence >= SILENCE)
                    return;
                const { value: payoutId, done } = await waiting.next();
                if (done)
                    return;
                const heard = await ask(payoutId);
                silence = heard === 'silent' ? silence + 1 : 0;
                if (heard !== 'told')
                    untold++;
            }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, worker));
        if (signal.aborted)
            return 'interrupted';
        if (silence >= SILENCE)
            return 'silent';
        if (untold === 0 || pass === passes)
            return 'all-asked';
        await pause(betweenMs, signal);
    }
}
async function* each({ waiting }) {
    for (let after = '';;) {
        const page = await waiting(after, PAGE);
        for (const { payoutId } of page)
            yield payoutId;
        const last = page.at(-1);
        if (!last)
            return undefined;
        after = last.payoutId;
    }
}
