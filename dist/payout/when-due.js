import { awaitsRelease } from "./holds.js";
import { become, change, nextQueryAt } from "./transition.js";
/** What time alone does to a payout whose `dueAt` has come. `ask`: the gateway must be asked about it. */
export function whenDue(payout, table, now) {
    const move = (state, fields) => change(payout, become(payout, state, fields), 'CLOCK', null);
    const expired = now >= payout.deadline;
    switch (payout.state) {
        case 'held':
        case 'queued':
            if (expired)
                return payout.attempt === 0
                    ? move('cancelled', { reason: 'expired' })
                    : move('review', { reason: 'expired' });
            if (awaitsRelease(payout))
                return change(payout, { ...payout, dueAt: payout.deadline }, 'CLOCK', null);
            if (payout.state === 'held')
                return move('queued', { ready: true });
            return change(payout, { ...payout, ready: true, dueAt: payout.deadline }, 'CLOCK', null);
        case 'submitting':
            return move('unknown', { reason: 'lease-ended', unknownSince: now, dueAt: nextQueryAt(0, table, now) });
        case 'unknown':
        case 'processing':
            return expired ? move('review', { reason: 'expired' }) : { ask: true };
        case 'review':
        case 'paid':
        case 'failed':
        case 'rejected':
        case 'cancelled':
            return { nothing: true };
    }
}
