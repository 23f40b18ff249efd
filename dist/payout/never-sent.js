import { anomaly, become } from "./transition.js";
/** The kind of an anomaly that shows that the ledger has lost something: its merchant is fenced for it. */
export const NEVER_SENT = 'never-sent';
/**
 * What evidence does of an order, or of an attempt, that the ledger does not know to have sent: the ledger was set back.
 * The evidence is kept, and a payout that waits goes to a person or to `payoutd recover`, and is not sent meanwhile.
 */
export function neverSent(payout, source, detail, exchange) {
    const told = anomaly(payout, source, NEVER_SENT, detail, exchange);
    if (payout.state !== 'held' && payout.state !== 'queued')
        return told;
    const after = become(payout, 'review', { reason: NEVER_SENT });
    return { ...told, change: { before: payout, after, source, exchange } };
}
