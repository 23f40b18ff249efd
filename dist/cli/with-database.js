import { connectDatabase } from "../platform/postgres.js";
/** For a search that no index helps, and for counting everything there is. */
const SEARCH_MS = 120_000;
/** A connection for one command, closed when `work` has ended. */
export async function withDatabase(config, work) {
    const db = connectDatabase({
        url: config.databaseUrl,
        connections: 1,
        applicationName: 'payoutd command',
        transactionTimeoutMs: SEARCH_MS,
    });
    try {
        return await work(db);
    }
    finally {
        await db.close();
    }
}
