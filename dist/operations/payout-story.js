import { payoutIdFor } from "../payout/identifiers.js";
import { unsealed } from "./asked-for.js";
import { evidenceOf } from "./review.js";
import { byAgentpayOrderId, byOrderNo, byPayoutId } from "./sql/find.js";
import { holdsOf } from "./sql/holds.js";
import { reversalOf } from "./sql/reversal.js";
import { payoutWithCommand } from "./sql/story.js";
/**
 * Finds a payout by its id, or else by what the gateway knows it as, or as `batch/reference` by where it stood in
 * a payroll file. Null: nobody knows it.
 */
export async function findPayout(db, merchantId, id) {
    const ways = [
        ['payoutId', byPayoutId, id],
        ['order number', byOrderNo, id],
        ['batch and reference', byPayoutId, idInFile(merchantId, id)],
        ['agentpayOrderId', byAgentpayOrderId, id],
    ];
    for (const [by, statement, name] of ways) {
        const [found] = await db.run(statement, { merchantId, id: name });
        if (found)
            return { key: { merchantId, payoutId: found.payoutId }, by };
    }
    return null;
}
/** A batch has no slash in its name. */
function idInFile(merchantId, id) {
    const slash = id.indexOf('/');
    return payoutIdFor(merchantId, id.slice(0, slash), id.slice(slash + 1));
}
/** The story of a payout that exists. Its parts are read one after another; what moves meanwhile shows in the later ones. */
export async function tellPayout(db, key, keys) {
    const { merchantId, payoutId } = key;
    const [row] = await db.run(payoutWithCommand, { merchantId, payoutId });
    const [reversal] = await db.run(reversalOf, { merchantId, payoutId });
    if (!row)
        throw new Error(`payout ${merchantId}:${payoutId} was found and is gone`);
    const { sealed, faults, ...payout } = row;
    return {
        payout,
        ...unsealed(key, sealed, keys),
        faults: faults ?? [],
        holds: await db.run(holdsOf, { merchantId, payoutIds: [payoutId] }),
        reversal: reversal ?? null,
        ...(await evidenceOf(db, payout)),
    };
}
