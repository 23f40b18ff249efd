import { paise } from "../payout/money.js";
const BALANCE_MAX_AGE_MS = 5_000;
const RATE_BURST_MS = 1_000;
/** From this lag on fewer payouts are claimed; from `LAG_STOP_MS` on, none. */
const LAG_SLOW_MS = 300;
const LAG_STOP_MS = 1_500;
/** A canary of 1, then 8, then all: counted in good answers since the canary began. */
export const RAMPED = 9;
const rampLimit = (good) => (good === 0 ? 1 : good < RAMPED ? 8 : Number.POSITIVE_INFINITY);
/**
 * How many payouts of a merchant may leave now. `inFlight` counts all processes; `lagMs` is how far the
 * slowest callback door is behind: callbacks come first.
 */
export function gate(purse, inFlight, lagMs, limits, now) {
    const closed = (why, askBalance = false) => ({
        room: 0,
        spendable: paise(0),
        askBalance,
        closed: why,
    });
    if (purse.recoveringSince !== null)
        return closed('recovering');
    if (purse.pausedReason !== null)
        return closed('paused');
    if (purse.circuitOpenUntil !== null && now < purse.circuitOpenUntil)
        return closed('circuit-open');
    if (lagMs >= LAG_STOP_MS)
        return closed('callbacks-behind');
    const stale = purse.snapshotAt === null || now - purse.snapshotAt > BALANCE_MAX_AGE_MS;
    if (purse.available === null)
        return closed('balance-unknown', true);
    const slots = Math.min(limits.maxInFlight, rampLimit(purse.ramp)) - inFlight;
    const patience = lagMs >= LAG_SLOW_MS ? Math.ceil(slots / 4) : slots;
    const rate = rateRoom(purse.rateNext, limits.ratePerSecond, now);
    const room = Math.max(0, Math.min(patience, rate));
    return {
        room,
        spendable: spendable(purse),
        askBalance: stale,
        closed: room > 0 ? null : slots <= 0 ? 'in-flight' : 'rate',
    };
}
/**
 * What the balance still covers: what was available when asked, less everything that the gateway may not
 * have taken off by then, less everything claimed since.
 */
export function spendable({ available, snapshotInDoubt, snapshotClaimed, claimedTotal }) {
    const left = (available ?? 0n) - snapshotInDoubt - (claimedTotal - snapshotClaimed);
    return paise(left > 0n ? left : 0n);
}
/** How many of `amounts`, in this order, the balance covers, and what they cost with estimated fees. */
export function covered(amounts, purse) {
    const limit = spendable(purse);
    let cost = 0n;
    let count = 0;
    for (const amount of amounts) {
        const next = cost + amount + purse.feeEstimate;
        if (next > limit)
            break;
        cost = next;
        count++;
    }
    return { count, cost: paise(cost) };
}
function rateRoom(rateNext, perSecond, now) {
    if (perSecond === null)
        return Number.POSITIVE_INFINITY;
    return Math.floor(((now - rateBase(rateNext, now)) * perSecond) / 1000);
}
const rateBase = (rateNext, now) => Math.max(rateNext ?? 0, now - RATE_BURST_MS);
/** When the rate budget is used up to, once `count` more have left. */
export const rateAfter = (rateNext, perSecond, count, now) => (perSecond === null ? null : rateBase(rateNext, now) + (count * 1000) / perSecond);
/** So many refused connections in a row open the circuit; unknown results may be single slow orders. */
const REFUSED_RUN = 5;
const UNKNOWN_RUN = 20;
const CIRCUIT_FIRST_MS = 1_000;
const CIRCUIT_LONGEST_MS = 60_000;
/**
 * What answers do to a merchant's pace, one after another. An open circuit ends in a canary again: one bad
 * answer to that opens it for twice as long.
 */
export function afterAnswers(mood, answers, now) {
    return answers.reduce((each, answer) => afterAnswer(each, answer, now), mood);
}
function afterAnswer(mood, answer, now) {
    switch (answer.kind) {
        case 'accepted': {
            const feeEstimate = answer.fee !== null && answer.fee > mood.feeEstimate ? answer.fee : mood.feeEstimate;
            return { ...calm(mood), feeEstimate, ramp: Math.min(RAMPED, mood.ramp + 1) };
        }
        case 'refused':
        case 'duplicate':
            return calm(mood);
        case 'retry-later':
            return answer.balanceShort ? { ...calm(mood), available: null } : calm(mood);
        case 'not-sent':
        case 'unknown': {
            // Sent before the circuit opened: it says nothing about the gateway since.
            if (mood.circuitOpenUntil !== null && now < mood.circuitOpenUntil)
                return mood;
            const badRun = mood.badRun + 1;
            const limit = answer.kind === 'not-sent' ? REFUSED_RUN : UNKNOWN_RUN;
            const probing = mood.circuitOpened > 0;
            if (badRun < limit && !probing)
                return { ...mood, badRun };
            const forMs = Math.min(CIRCUIT_LONGEST_MS, CIRCUIT_FIRST_MS * 2 ** mood.circuitOpened);
            return {
                ...mood,
                badRun: 0,
                ramp: 0,
                circuitOpened: mood.circuitOpened + 1,
                circuitOpenUntil: now + forMs,
                circuitReason: `${badRun} × ${answer.reason}`,
            };
        }
    }
}
const calm = (mood) => ({
    ...mood,
    badRun: 0,
    circuitOpened: 0,
    circuitOpenUntil: null,
    circuitReason: null,
});
/** Whether an answer may change the mood that a claim found, so that it must be written down. */
export function isWorthTelling(answer, found) {
    if (found.ramp < RAMPED || found.badRun > 0 || found.circuitOpened > 0)
        return true;
    if (answer.kind === 'accepted')
        return answer.fee !== null && answer.fee > found.feeEstimate;
    return answer.kind !== 'refused';
}
