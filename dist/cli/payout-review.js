import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { reviewCases } from "../operations/review.js";
import { reviewText } from "../operations/review-text.js";
import { systemClock } from "../platform/clock.js";
import { countOf } from "./count-of.js";
import { merchantOf } from "./merchant-of.js";
import { paiseAsText } from "./paise-as-text.js";
import { WHOSE_PAYOUT } from "./payout-of.js";
import { withDatabase } from "./with-database.js";
export const reviewCommand = new Command('review')
    .description('list the payouts that wait for a person with their evidence, the longest waiting first')
    .option('--merchant <id>', WHOSE_PAYOUT)
    .option('--limit <count>', 'at most so many', countOf, 100)
    .option('--json', 'print each as a line of JSON: amounts in paise, times in milliseconds since 1970')
    .action(async ({ merchant, limit, json }) => {
    const config = readConfig(process.env);
    const merchantId = await merchantOf(config, merchant, 'payout');
    const cases = await withDatabase(config, (db) => reviewCases(db, { merchantId, limit: limit + 1, keys: config.sealing }));
    const shown = cases.slice(0, limit);
    const now = systemClock.now();
    if (json)
        for (const each of shown)
            console.log(JSON.stringify(each, paiseAsText));
    else if (shown.length === 0)
        console.log('no payout waits for a person');
    else
        console.log(shown.map((each) => reviewText(each, now)).join('\n\n'));
    if (cases.length > limit)
        console.error(`there are more: --limit ${limit} shows the first`);
});
