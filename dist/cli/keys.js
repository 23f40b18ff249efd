import { Command } from 'commander';
import { readConfig } from "../config/config.js";
import { proveKeys } from "../operations/key-proofs.js";
import { censusOfKeys, retireKeys, rotateKeys, unusedKeys } from "../operations/rotate-keys.js";
import { isComplete, previewText, rotationText } from "../operations/rotate-text.js";
import { systemClock } from "../platform/clock.js";
import { consented, tellDone } from "./decision.js";
import { rateOf } from "./rate-of.js";
import { withDatabase } from "./with-database.js";
const INTERRUPTED = 130;
const rotate = new Command('rotate')
    .description('seal every bank detail with the newest key of ENCRYPTION_KEYS; it can be interrupted, and payoutd can work meanwhile')
    .option('--rate <count/s>', 'payouts a second at most', rateOf)
    .option('--retire', 'afterwards forget former keys that seal nothing any more: payoutd starts without them')
    .option('--dry-run', 'say what it would do, and do nothing')
    .option('--yes', 'do not ask; needed where there is no terminal')
    .option('--json', 'print what it came to as JSON')
    .action(async (options) => {
    const config = readConfig(process.env);
    await withDatabase(config, async (db) => {
        const { current } = config.sealing;
        const before = await censusOfKeys(db);
        const would = {
            text: previewText(before, current, options.retire ?? false),
            json: { current, sealed: Object.fromEntries(before) },
        };
        if (!(await consented(would, options)))
            return;
        const rotation = await run(db, config, options);
        tellDone({ text: rotationText(rotation), json: flat(rotation) }, options);
        process.exitCode = rotation.interrupted ? INTERRUPTED : isComplete(rotation) ? 0 : 1;
    });
});
export const keysCommand = new Command('keys')
    .description('look after the encryption keys')
    .addCommand(rotate);
async function run(db, config, { rate, retire }) {
    const keys = { sealing: config.sealing, fingerprint: config.fingerprintKey };
    await proveKeys(db, keys);
    const abort = new AbortController();
    const stop = () => abort.abort();
    process.once('SIGINT', stop).once('SIGTERM', stop);
    try {
        const rotated = await rotateKeys(db, keys.sealing, {
            rate: rate ?? null,
            clock: systemClock,
            signal: abort.signal,
            onProgress,
        });
        const census = rotated.interrupted ? new Map() : await censusOfKeys(db);
        const unused = rotated.interrupted ? [] : await unusedKeys(db, keys.sealing, census);
        const retired = retire === true && unused.length > 0;
        if (retired)
            await retireKeys(db, unused);
        return { current: keys.sealing.current, ...rotated, census, unused, retired };
    }
    finally {
        if (process.stderr.isTTY)
            process.stderr.write('\r\u001b[K');
        process.off('SIGINT', stop).off('SIGTERM', stop);
    }
}
function onProgress(lookedAt, resealed) {
    if (process.stderr.isTTY)
        process.stderr.write(`\r${lookedAt} looked at, ${resealed} sealed anew`);
}
const flat = ({ unopened, census, ...rotation }) => ({
    ...rotation,
    unopened: counts(unopened),
    sealed: counts(census),
});
const counts = (census) => Object.fromEntries(census);
