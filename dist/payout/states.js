/** The states of docs/design.md. The last four are ends: nothing leaves them. */
export const STATES = [
    'held',
    'queued',
    'submitting',
    'unknown',
    'processing',
    'review',
    'paid',
    'failed',
    'rejected',
    'cancelled',
];
const LEAVES_TO = {
    held: ['held', 'queued', 'cancelled', 'review'],
    queued: ['submitting', 'held', 'cancelled', 'review'],
    submitting: ['processing', 'paid', 'failed', 'queued', 'unknown'],
    unknown: ['processing', 'paid', 'failed', 'queued', 'review'],
    processing: ['paid', 'failed', 'review'],
    review: ['processing', 'paid', 'failed', 'queued'],
    paid: [],
    failed: [],
    rejected: [],
    cancelled: [],
};
/** Where evidence can also lead a waiting payout, once an attempt exists that the gateway may hold. */
const AFTER_AN_ATTEMPT = ['processing', 'paid', 'failed'];
export const isEnd = (state) => LEAVES_TO[state].length === 0;
/** Whether a payout with `attempts` attempts so far may go from one state to another. */
export function mayMove(from, to, attempts) {
    if (to === 'cancelled' && attempts > 0)
        return false;
    const waiting = from === 'held' || from === 'queued';
    if (waiting && attempts > 0 && AFTER_AN_ATTEMPT.includes(to))
        return true;
    return LEAVES_TO[from].includes(to);
}
