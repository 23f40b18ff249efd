import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { RAMPED, spendable } from "../dispatch/pace.js";
import { merchantOverviews, merchantTraffic } from "../operations/merchant-overview.js";
import { merchantsText, trafficText } from "../operations/merchant-text.js";
import { pauseMerchant, resumeMerchant } from "../operations/stop-button.js";
import { formatTime } from "../operations/times.js";
import { scrub } from "../payout/mask.js";
import { said } from "./decision.js";
import { unknownMerchant } from "./merchant-of.js";
import { paiseAsText } from "./paise-as-text.js";
import { withDatabase } from "./with-database.js";
export const merchantsCommand = new Command('merchants')
    .description('list merchants: paused, circuit, canary, balance, what is queued, in flight and in review')
    .option('--json', 'print each as a line of JSON: amounts in paise, times in milliseconds since 1970')
    .action(async ({ json }) => {
    const config = readConfig(process.env);
    const note = json ? console.error : console.log;
    await withDatabase(config, async (db) => {
        const overviews = await merchantOverviews(db, { spendable, ramped: RAMPED });
        if (json)
            for (const each of overviews)
                console.log(JSON.stringify(each, paiseAsText));
        else if (overviews.length > 0)
            console.log(merchantsText(overviews));
        const known = new Set(overviews.map(({ merchantId }) => merchantId));
        for (const merchantId of config.merchants.keys()) {
            if (!known.has(merchantId))
                note(`${merchantId} has sent nothing yet: dispatch never ran for it`);
        }
        for (const merchantId of known) {
            if (!config.merchants.has(merchantId)) {
                note(`${merchantId} is not in the settings of this command: a payoutd with the same ones sends and asks nothing for it`);
            }
        }
    });
});
export const pauseCommand = new Command('pause')
    .description('stop sending payouts of one merchant; what is in flight is still answered and settled')
    .argument('<merchant>')
    .requiredOption('--reason <text>', 'why; shown to everyone', said)
    .requiredOption('--by <name>', 'who decides', said)
    .action(async (merchantId, { reason, by }) => {
    const config = readConfig(process.env);
    await withDatabase(config, async (db) => {
        const feeEstimate = config.merchants.get(merchantId)?.feeEstimate ?? null;
        const outcome = await pauseMerchant(db, { merchantId, by, reason: scrub(reason), feeEstimate });
        switch (outcome.kind) {
            case 'unknown':
                throw unknownMerchant(merchantId, config);
            case 'already': {
                const { pausedBy, pausedAt, pausedReason } = outcome;
                console.log(`${merchantId} is paused already, by ${pausedBy} since ${formatTime(pausedAt)}: ${pausedReason}`);
                break;
            }
            case 'paused':
                console.log(`${merchantId} is paused: nothing more of it is sent`);
        }
        console.log(trafficText(await merchantTraffic(db, merchantId)));
    });
});
export const resumeCommand = new Command('resume')
    .description('go on sending payouts of a merchant that was paused')
    .argument('<merchant>')
    .requiredOption('--reason <text>', 'why; kept with the decision', said)
    .requiredOption('--by <name>', 'who decides; kept with the decision', said)
    .action(async (merchantId, { reason, by }) => {
    const config = readConfig(process.env);
    await withDatabase(config, async (db) => {
        const outcome = await resumeMerchant(db, { merchantId, by, reason });
        switch (outcome.kind) {
            case 'unknown':
                throw unknownMerchant(merchantId, config);
            case 'not-paused':
                console.log(`${merchantId} is not paused`);
                break;
            case 'resumed': {
                const { pausedBy, pausedAt, pausedReason } = outcome;
                console.log(`${merchantId} goes on, as ${by} decided; it was paused by ${pausedBy} at ${formatTime(pausedAt)}: ${pausedReason}`);
            }
        }
        console.log(trafficText(await merchantTraffic(db, merchantId)));
    });
});
