import { consented, tellDone, tellRefused } from "./decision.js";
import { withDatabase } from "./with-database.js";
import { withLedger } from "./with-ledger.js";
/** Says what it would do, does it if that is agreed to, and says what it came to; the exit code is 1 if it is not done. */
export async function decide(config, options, { find, preview, deed }) {
    const request = await withDatabase(config, async (db) => {
        const request = await find(db);
        const would = await preview(request, db);
        if (would.isDone)
            return (await consented(would, options)) ? request : null;
        tellRefused(would, options);
        return null;
    });
    if (request === null)
        return;
    const did = await withLedger(config, (ledger) => deed(request, ledger));
    if (did.isDone)
        tellDone(did, options);
    else
        tellRefused(did, options);
}
