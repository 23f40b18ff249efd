import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { acknowledgeAnomalies, findAnomaly, previewAcknowledge, } from "../operations/anomalies.js";
import { anomalyListText, anomalyText } from "../operations/anomaly-text.js";
import { anomaliesOf } from "../operations/sql/anomalies.js";
import { formatTime } from "../operations/times.js";
import { ExpectedFailure } from "../platform/expected-failure.js";
import { countOf } from "./count-of.js";
import { consented, tellDone, tellUndone, withDecision } from "./decision.js";
import { merchantOf } from "./merchant-of.js";
import { withDatabase } from "./with-database.js";
const WHOSE = 'whose anomaly it is; may be left out where there is one merchant';
const list = new Command('list')
    .description('list what contradicts the ledger: first what nobody has acknowledged, the oldest first')
    .option('--merchant <id>', WHOSE)
    .option('--limit <count>', 'at most so many', countOf, 100)
    .option('--json', 'print each as a line of JSON: times in milliseconds since 1970')
    .action(async ({ merchant, limit, json }) => {
    const config = readConfig(process.env);
    const merchantId = await merchantOf(config, merchant, 'anomaly');
    const found = await withDatabase(config, (db) => db.run(anomaliesOf, { merchantId, limit: limit + 1 }));
    const shown = found.slice(0, limit);
    if (json)
        for (const anomaly of shown)
            console.log(JSON.stringify(anomaly));
    else
        console.log(shown.length > 0 ? anomalyListText(shown) : 'none');
    if (found.length > limit)
        console.error(`there are more: --limit ${limit} shows the first`);
});
const show = new Command('show')
    .description('tell one anomaly, with all that was said on the wire')
    .argument('<id>', 'as payoutd anomaly list tells it; the ce_id of the message')
    .option('--merchant <id>', WHOSE)
    .option('--json', 'print it as JSON: times in milliseconds since 1970')
    .action(async (id, { merchant, json }) => {
    const config = readConfig(process.env);
    const merchantId = await merchantOf(config, merchant, 'anomaly');
    const anomaly = await withDatabase(config, (db) => findAnomaly(db, merchantId, id));
    if (!anomaly)
        throw new ExpectedFailure(`merchant ${merchantId} has no anomaly ${id}`);
    console.log(json ? JSON.stringify(anomaly, null, 2) : anomalyText(anomaly));
});
const acknowledge = withDecision(new Command('acknowledge')
    .description('record that a person has looked at anomalies; those acknowledged before stay as they are')
    .argument('<ids...>', 'as payoutd anomaly list tells them')
    .option('--merchant <id>', WHOSE)).action(async (anomalyIds, options) => {
    const config = readConfig(process.env);
    const merchantId = await merchantOf(config, options.merchant, 'anomaly');
    const { by, reason } = options;
    const request = { merchantId, anomalyIds, by, reason };
    await withDatabase(config, async (db) => {
        const expected = await previewAcknowledge(request, db);
        const would = told(expected, 'would be');
        if (expected.some(({ kind }) => kind === 'unknown'))
            process.exitCode = 1;
        if (expected.every(({ kind }) => kind !== 'acknowledged'))
            tellUndone(would, options);
        else if (await consented(would, options)) {
            tellDone(told(await acknowledgeAnomalies(request, db), 'is'), options);
        }
    });
});
export const anomalyCommand = new Command('anomaly')
    .description('look at evidence that contradicts the ledger, and acknowledge it')
    .addCommand(list)
    .addCommand(show)
    .addCommand(acknowledge);
const told = (outcomes, be) => ({
    text: outcomes.map((each) => `anomaly ${each.anomalyId} ${inWords(each, be)}`).join('\n'),
    json: { anomalies: outcomes },
});
/** Completes "anomaly 7c… …". */
function inWords(outcome, be) {
    switch (outcome.kind) {
        case 'acknowledged':
            return `${be} acknowledged`;
        case 'already':
            return `was acknowledged before, by ${outcome.by} at ${formatTime(outcome.at)}`;
        case 'unknown':
            return 'is not known: payoutd anomaly list names them all';
    }
}
