import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { createGatewayClient } from "../gateway/client.js";
import { timetable } from "../gateway/dialect.js";
import { PositiveControl } from "../gateway/positive-control.js";
import { topicNames } from "../ledger/topics.js";
import { recoveryText } from "../operations/recovery-text.js";
import { JUDGEMENT } from "../payout/judgement.js";
import { scrub } from "../payout/mask.js";
import { systemClock } from "../platform/clock.js";
import { ExpectedFailure } from "../platform/expected-failure.js";
import { connectAdmin } from "../platform/kafka/admin.js";
import { readTopic } from "../platform/kafka/read-topic.js";
import { silentLogger } from "../platform/log.js";
import { AT_ONCE } from "../reconcile/ask-each.js";
import { howFarBehind, untilCaughtUp } from "../recovery/catch-up.js";
import { recallPublished } from "../recovery/lost.js";
import { askAboutOpen, fence, findFence, listOpen, takeDown } from "../recovery/recovery.js";
import { countOpenPayouts } from "../recovery/sql/list.js";
import { askingAbout } from "../settlement/control.js";
import { Bar } from "./bar.js";
import { consented, tellDone, tellRefused, withDecision, } from "./decision.js";
import { rateOf } from "./rate-of.js";
import { withDatabase } from "./with-database.js";
import { withLedger } from "./with-ledger.js";
const INTERRUPTED = 130;
export const recoverCommand = withDecision(new Command('recover')
    .description('after a restore of the database: send nothing until the gateway was asked about every payout that has not ended')
    .option('--merchant <id>', 'only this one; otherwise every merchant in the settings')
    .option('--rate <count/s>', 'at most so many questions a second', rateOf, 10))
    .addHelpText('after', `
The order: stop every payoutd, restore, start payoutd recover, and when it says so payoutd serve, which takes the commands
in again that the database lost. Interrupted, the same command goes on.
The exit code is 0 when every payout was told of and sending goes on, 1 while something is still to be asked and the
merchant stays fenced, ${INTERRUPTED} when interrupted.`)
    .action(async (options) => {
    const config = readConfig(process.env);
    const merchants = merchantsIn(config, options.merchant);
    const topic = topicNames(config.topicPrefix).commands;
    const ends = await endsOf(topic, config);
    const would = await withDatabase(config, (db) => expected(merchants, topic, ends, db));
    if (!(await consented(would, options)))
        return;
    await withLedger(config, async (ledger, codec) => {
        const abort = new AbortController();
        const stop = () => abort.abort();
        process.once('SIGINT', stop).once('SIGTERM', stop);
        try {
            await recover({ merchants, topic, ends, options, config, ledger, codec, signal: abort.signal });
        }
        finally {
            process.off('SIGINT', stop).off('SIGTERM', stop);
        }
    });
});
async function recover({ merchants, topic, ends, options, config, ledger, codec, signal }) {
    const { db } = ledger;
    const { by, reason } = options;
    const fences = await fence(db, merchants, { by, reason: scrub(reason) });
    console.error(`${fences.map(({ merchantId }) => merchantId).join(', ')}: fenced, so that nothing is sent`);
    const caughtUp = await untilCaughtUp(topic, ends, {
        db,
        clock: systemClock,
        signal,
        onBehind: (behind) => console.error(`${behind} messages are to be taken in again: payoutd serve does it, start it now`),
    });
    if (caughtUp.kind === 'stuck') {
        throw new ExpectedFailure(`nothing was taken in for a minute, and ${caughtUp.behind} messages are left: the merchants stay fenced; ` +
            'start payoutd serve, and then this command again, which goes on');
    }
    if (caughtUp.kind === 'interrupted')
        return tellInterrupted();
    for (const raised of fences)
        await listOpen(db, raised);
    const recalled = await recallPublished(fences.map(({ merchantId }) => merchantId), {
        ledger,
        codec,
        readTopic: (topic, onRecord) => readTopic({ connection: config.kafka, topic, onRecord, log: silentLogger }),
    });
    if (recalled > 0)
        console.error(`${recalled} payouts have got back what was published about them and then lost`);
    const findings = [];
    for (const raised of fences) {
        if (signal.aborted)
            break;
        const merchant = merchants.find(({ merchantId }) => merchantId === raised.merchantId);
        findings.push(await recoverOne(raised, merchant, { options, ledger, signal }));
    }
    const told = { text: findings.map(recoveryText).join('\n'), json: { merchants: findings } };
    if (signal.aborted)
        tellInterrupted();
    else if (findings.every(({ kind }) => kind === 'recovered'))
        tellDone(told, options);
    else
        tellRefused(told, options);
}
function tellInterrupted() {
    process.exitCode = INTERRUPTED;
    console.error('interrupted: what was not asked about stays fenced, and the same command goes on');
}
async function recoverOne(raised, merchant, { options, ledger, signal }) {
    const { merchantId, baseUrl, mchId, key, dialect, tls } = merchant;
    const client = createGatewayClient({
        ...{ baseUrl, mchId, key, dialect, tls },
        clock: systemClock,
        connections: AT_ONCE,
    });
    const query = (mchOrderNo) => client.query({ mchOrderNo });
    const control = new PositiveControl(systemClock);
    const bar = new Bar(process.stderr.isTTY && !options.json);
    try {
        const ending = await askAboutOpen(raised, {
            ledger,
            judge: JUDGEMENT,
            table: timetable(dialect),
            query,
            control: {
                found: (mchOrderNo) => control.found(client.settingsHash, mchOrderNo),
                holds: () => control.holds(client.settingsHash, askingAbout(merchantId, query, ledger.db)),
            },
            ratePerSecond: options.rate,
            clock: systemClock,
            signal,
            onProgress: (asked, listed) => bar.show(asked, listed),
        });
        return { merchantId, ending, ...(await takeDown(raised, ledger)) };
    }
    finally {
        bar.end();
        await client.close();
    }
}
async function expected(merchants, topic, ends, db) {
    const open = [];
    for (const { merchantId } of merchants) {
        const [counted] = await db.run(countOpenPayouts, { merchantId });
        const fenced = (await findFence(db, merchantId)) !== null;
        open.push({ merchantId, open: counted?.count ?? 0, fenced });
    }
    const behind = await howFarBehind(topic, ends, db);
    const each = open.map(({ merchantId, open, fenced }) => fenced
        ? `${merchantId} is fenced already, and the asking would go on about its open payouts, ${open} by now`
        : `${merchantId} would be fenced, and the gateway asked about its open payouts, ${open} by now`);
    return {
        text: [...each, `${behind} messages of commands would first have to be taken in`].join('; '),
        json: { merchants: open, behind },
    };
}
function merchantsIn({ merchants }, given) {
    if (given === undefined)
        return [...merchants.values()];
    const merchant = merchants.get(given);
    if (merchant)
        return [merchant];
    throw new ExpectedFailure(`no merchant is called ${given}: the settings have ${[...merchants.keys()].join(', ')}`);
}
async function endsOf(topic, { kafka }) {
    const admin = await connectAdmin(kafka, silentLogger);
    try {
        return await admin.logs(topic);
    }
    finally {
        await admin.close();
    }
}
