import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import { withSession } from "../platform/postgres.js";
export const migrationsDir = fileURLToPath(new URL('./migrations', import.meta.url));
/**
 * Brings the database at `url` to the newest schema. Several processes may do it at once: they wait for one
 * another. Returns the names of the migrations that were run; empty when nothing was missing.
 */
export const migrate = (url, log) => 
// With a URL the library would leave its connection closing behind it.
withSession(url, (session) => migrateOver(session, log));
/** The same over a session that is open already. */
export async function migrateOver(dbClient, log) {
    const logger = {
        info: () => undefined,
        warn: (text) => log.warn(text),
        // The error is thrown as well.
        error: (text) => log.debug(text),
    };
    const done = await runner({
        dbClient,
        dir: migrationsDir,
        direction: 'up',
        migrationsTable: 'migrations',
        advisoryLockMode: 'wait',
        logger,
    });
    return done.map(({ name }) => name);
}
