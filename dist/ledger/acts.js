import { scrub } from "../payout/mask.js";
import { whoami } from "../platform/whoami.js";
import { json } from "./ledger.js";
import { insertAct } from "./sql/acts.js";
/**
 * Keeps an act with the user and the host of this process. To be called in the transaction that changes what the act
 * changes, so that neither is there without the other; and before whatever cannot be taken back, such as a call to
 * the gateway.
 */
export async function recordAct(connection, act) {
    await connection.run(insertAct, {
        ...act,
        ...whoami(),
        reason: scrub(act.reason),
        subjects: [...act.subjects],
        before: json(act.before),
        after: json(act.after),
    });
}
