import { nextQueryAt } from "../payout/transition.js";
import { become, change } from "./transition.js";
/** What time alone does to a payin whose `dueAt` has come. `ask`: the gateway must be asked about it. */
export function whenDue(payin, table, now) {
    if (payin.state !== 'creating')
        return { ask: true };
    const fields = { reason: 'lease-ended', unknownSince: now, dueAt: nextQueryAt(0, table, now) };
    return change(payin, become(payin, 'unknown', fields), 'CLOCK', null);
}
