import { nextQueryAt } from "../payout/transition.js";
import { change } from "./transition.js";
/**
 * What the answer to a UTR recovery does: where the gateway may have it in hand, the payin is asked about anew,
 * from the first wait on, also one that had failed or expired. It proves no payment.
 */
export function recordRecovery(payin, answer, table, now) {
    const inHand = answer.kind === 'submitted' || answer.kind === 'unknown';
    const after = inHand && payin.state !== 'paid' ? { ...payin, queries: 0, dueAt: nextQueryAt(0, table, now) } : payin;
    return change(payin, after, 'RECOVERY', answer.exchange);
}
