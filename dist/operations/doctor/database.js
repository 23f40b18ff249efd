import { readdir } from 'node:fs/promises';
import { judgeClock } from "./clocks.js";
import { good, wrong } from "./examine.js";
import { doneMigrations, hasMigrations, missingRights, serverClock, serverState, } from "./sql/server.js";
/** The oldest server that knows `transaction_timeout`. */
const OLDEST = 17;
export function databaseChecks(db, address, clock) {
    return [
        { name: 'database', run: async () => judgeServer((await db.run(serverState, {}))[0], address) },
        { name: 'database clock', needs: ['database'], run: () => databaseClock(db, clock) },
        { name: 'migrations', needs: ['database'], run: () => migrations(db) },
        {
            name: 'database rights',
            needs: ['migrations'],
            run: async () => judgeRights(await db.run(missingRights, {})),
        },
    ];
}
/** A commit that a crash can undo would let a payout be sent a second time. */
export function judgeServer(server, address) {
    if (!server)
        return wrong(`the database ${address} does not tell its settings`, 'see what listens there');
    const { version, versionText, standby, encoding, fsync, synchronousCommit } = server;
    if (version < OLDEST * 10_000) {
        return wrong(`PostgreSQL ${versionText} at ${address} is too old`, `update it to PostgreSQL ${OLDEST} or later`);
    }
    if (standby) {
        return wrong(`${address} is a standby, which can only be read`, 'name the primary in DATABASE_URL');
    }
    if (fsync !== 'on' || synchronousCommit === 'off') {
        return wrong(`${address} can lose commits in a crash (fsync ${fsync}, synchronous_commit ${synchronousCommit})`, 'set both to on: a lost commit can pay somebody twice');
    }
    if (encoding !== 'UTF8') {
        return wrong(`${address} is encoded in ${encoding}`, 'make the database with encoding UTF8: names and messages hold any letter');
    }
    return good(`PostgreSQL ${versionText} at ${address}`);
}
/** The quickest of some readings: what the way there takes blurs them. */
async function databaseClock(db, clock) {
    const readings = [];
    for (let i = 0; i < 3; i++) {
        const before = clock.now();
        const [row] = await db.run(serverClock, {});
        if (row)
            readings.push({ before, after: clock.now(), shown: row.shown, resolutionMs: 1 });
    }
    const quickest = readings.reduce((best, each) => each.after - each.before < best.after - best.before ? each : best);
    return judgeClock("the database's clock", quickest);
}
const MIGRATIONS = new URL('../../ledger/migrations/', import.meta.url);
async function migrations(db) {
    const files = (await readdir(MIGRATIONS)).filter((file) => file.endsWith('.sql'));
    const ours = files.map((file) => file.replace(/\.sql$/, '')).sort();
    const [table] = await db.run(hasMigrations, {});
    const done = table?.present ? (await db.run(doneMigrations, {})).map(({ name }) => name) : [];
    return judgeMigrations(ours, done);
}
export function judgeMigrations(ours, done) {
    const missing = ours.filter((name) => !done.includes(name));
    if (missing.length > 0) {
        return wrong(`the database lacks the migrations ${missing.join(', ')}`, 'run payoutd migrate');
    }
    const newer = done.filter((name) => !ours.includes(name));
    if (newer.length > 0) {
        return wrong(`the database has migrations that this payoutd does not know: ${newer.join(', ')}`, 'use the payoutd that ran them, or a newer one');
    }
    return good(`${ours.length} of ${ours.length} migrations are there`);
}
export function judgeRights(missing) {
    if (missing.length === 0)
        return good('every table can be read and written');
    const lacks = [...Map.groupBy(missing, ({ on }) => on)].map(([on, rights]) => `${rights.map(({ privilege }) => privilege).join(', ')} on ${on}`);
    return wrong(`payoutd's database user lacks ${lacks.join('; ')}`, 'grant them to it; ownership comes with the role of the owner, and makes the partitions of history');
}
