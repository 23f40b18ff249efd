import { become, change } from "./transition.js";
/** Why a payout waits until a person releases it. In the order in which the first one becomes its reason. */
export const HOLD_REASONS = ['duplicate', 'duplicate-file', 'beneficiary-changed'];
export const awaitsRelease = ({ state, reason }) => state === 'held' && HOLD_REASONS.some((each) => each === reason);
/**
 * What a person's release does: the payout is queued, or held until `paysAt` if that is still to come. One that
 * waits for no release, or is past its deadline, stays what it is.
 */
export function release(payout, paysAt, why, now) {
    if (!awaitsRelease(payout) || now >= payout.deadline)
        return { nothing: true };
    const after = paysAt > now
        ? become(payout, 'held', { reason: 'schedule', dueAt: paysAt })
        : become(payout, 'queued', { ready: true, dueAt: payout.deadline });
    return change(payout, after, 'OPERATOR', { note: why });
}
