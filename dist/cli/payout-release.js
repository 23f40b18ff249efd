import { Command, Option } from 'commander';
import { readConfig } from "../config/config.js";
import { askedForText } from "../operations/asked-for.js";
import { TOLD } from "../operations/each-text.js";
import { tellPayout } from "../operations/payout-story.js";
import { previewRelease, releasePayouts } from "../operations/release-payouts.js";
import { isReleased, releaseText } from "../operations/release-text.js";
import { heldOfBatch } from "../operations/sql/holds.js";
import { HOLD_REASONS } from "../payout/holds.js";
import { ExpectedFailure } from "../platform/expected-failure.js";
import { decide } from "./decide.js";
import { withDecision } from "./decision.js";
import { merchantOf } from "./merchant-of.js";
import { PAYOUT_ID, payoutsOf, WHOSE_PAYOUT } from "./payout-of.js";
export const releaseCommand = withDecision(new Command('release')
    .description('let payouts go that were held for a person: duplicate, duplicate-file or beneficiary-changed. They are queued')
    .argument('[ids...]', PAYOUT_ID)
    .option('--batch <id>', 'all of this batch that wait for it')
    .addOption(new Option('--held-for <reasons...>', 'with --batch: only what is held for these and nothing else').choices(HOLD_REASONS))
    .option('--merchant <id>', WHOSE_PAYOUT)).action(async (ids, options) => {
    const config = readConfig(process.env);
    const merchantId = await merchantOf(config, options.merchant, 'payout');
    const { by, reason, batch, heldFor } = options;
    if (heldFor && batch === undefined)
        throw new ExpectedFailure('--held-for belongs to --batch');
    await decide(config, options, {
        find: async (db) => ({
            ...{ merchantId, by, reason },
            payoutIds: await payoutsOf(db, merchantId, ids, batch, (batchId) => db.run(heldOfBatch, { merchantId, batchId, reasons: heldFor ?? [...HOLD_REASONS] })),
        }),
        // Some are worth to be asked about; it is done when all are.
        preview: async (request, db) => {
            const expected = await previewRelease(request, db);
            const asked = await askedFor(db, merchantId, expected, config);
            return { ...told(expected, 'would be', asked), isDone: expected.some(isReleased) };
        },
        deed: async (request, ledger) => {
            const outcomes = await releasePayouts(request, ledger);
            return { ...told(outcomes, 'is'), isDone: outcomes.every(isReleased) };
        },
    });
});
const told = (outcomes, be, askedFor) => ({
    text: releaseText(outcomes, be, askedFor),
    json: { payouts: outcomes },
});
/** What was asked for, of the first ones. */
async function askedFor(db, merchantId, outcomes, { sealing }) {
    const asked = new Map();
    for (const { payoutId } of outcomes.slice(0, TOLD)) {
        asked.set(payoutId, askedForText(await tellPayout(db, { merchantId, payoutId }, sealing)));
    }
    return asked;
}
