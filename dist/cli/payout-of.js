import { findPayout } from "../operations/payout-story.js";
import { ExpectedFailure } from "../platform/expected-failure.js";
export const PAYOUT_ID = 'payoutId, order number, agentpayOrderId, or batch/reference of a row of a payroll file';
export const WHOSE_PAYOUT = 'whose payout it is; may be left out where there is one merchant';
/** The payout that a person named. Throws an ExpectedFailure where nobody knows it. */
export async function payoutOf(db, merchantId, id) {
    const found = await findPayout(db, merchantId, id);
    if (found)
        return found;
    throw new ExpectedFailure(`merchant ${merchantId} has no payout with the payoutId, order number, agentpayOrderId or batch/reference ${id}: payoutd dlq list shows commands that could not be taken in`);
}
/**
 * The payoutIds of those that a person named, one by one or as those of a batch that `ofBatch` finds. Throws an
 * ExpectedFailure where there are none.
 */
export async function payoutsOf(db, merchantId, ids, batchId, ofBatch) {
    if (ids.length > 0 && batchId !== undefined)
        throw new ExpectedFailure('give ids or --batch, not both');
    if (batchId !== undefined) {
        const found = await ofBatch(batchId);
        if (found.length > 0)
            return found.map(({ payoutId }) => payoutId);
        throw new ExpectedFailure(`merchant ${merchantId} has no such payout in batch ${batchId}`);
    }
    if (ids.length === 0)
        throw new ExpectedFailure('which payouts? give their ids, or --batch');
    const found = [];
    for (const id of ids)
        found.push((await payoutOf(db, merchantId, id)).key.payoutId);
    return found;
}
