import { balance } from "./cases/balance.js";
import { callbacks } from "./cases/callbacks.js";
import { payinCreate } from "./cases/payin-create.js";
import { payinQuery } from "./cases/payin-query.js";
import { payinRecovery } from "./cases/payin-recovery.js";
import { payoutCreate } from "./cases/payout-create.js";
import { payoutQuery } from "./cases/payout-query.js";
import { signature } from "./cases/signature.js";
import { Differs, NotTried } from "./demand.js";
import { Subject } from "./subject.js";
/** Every case, in the order in which they are tried. */
export const CASES = [
    ...signature,
    ...payinCreate,
    ...payinQuery,
    ...payinRecovery,
    ...payoutCreate,
    ...payoutQuery,
    ...balance,
    ...callbacks,
];
/**
 * Tries every case, one after the other, at a server of the family, and yields each verdict as it comes. It
 * creates payins and payouts of one rupee each. Throws on a base URL that is none, and on what is a fault of
 * nobody's server.
 */
export async function* tryConformance(settings) {
    const subject = new Subject(settings);
    try {
        for (const each of CASES)
            yield { case: each, ...(await tryCase(each, subject)) };
    }
    finally {
        await subject.close();
    }
}
async function tryCase(each, subject) {
    try {
        const seen = await each.ask(subject);
        return { verdict: each.open ? 'not-shown' : 'holds', seen };
    }
    catch (error) {
        if (error instanceof Differs)
            return { verdict: 'differs', seen: error.message };
        if (error instanceof NotTried)
            return { verdict: 'not-tried', seen: error.message };
        throw error;
    }
}
