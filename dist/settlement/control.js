import { someKnownOrder } from "./sql/control.js";
/** How the positive control asks about a payout of this merchant that must exist. */
export const askingAbout = (merchantId, query, db) => ({
    known: async () => (await db.run(someKnownOrder, { merchantId }))[0]?.orderNo ?? null,
    finds: async (mchOrderNo) => (await query(mchOrderNo)).kind === 'found',
});
