import { pause } from "../platform/lifecycle.js";
import { intakePlaces } from "./sql/behind.js";
const STUCK_MS = 60_000;
const LOOK_EVERY_MS = 500;
/** Waits until intake, which runs in other processes, has taken in everything that the commands' topic held. */
export async function untilCaughtUp(topic, ends, { db, clock, signal, onBehind }) {
    let before;
    let movedAt = clock.monotonic();
    while (!signal.aborted) {
        const behind = await howFarBehind(topic, ends, db);
        if (behind === 0n)
            return { kind: 'caught-up' };
        if (behind !== before) {
            onBehind(behind);
            movedAt = clock.monotonic();
        }
        if (clock.monotonic() - movedAt > STUCK_MS)
            return { kind: 'stuck', behind };
        before = behind;
        await pause(LOOK_EVERY_MS, signal);
    }
    return { kind: 'interrupted' };
}
/** Messages that intake has not taken in: what Kafka has dropped by now, it never will. */
export async function howFarBehind(topic, ends, db) {
    const standings = new Map((await db.run(intakePlaces, { topic })).map((standing) => [standing.partition, standing]));
    return ends.reduce((behind, { partition, id, low, high }) => {
        const standing = standings.get(partition);
        // An offset in another log says nothing of this one.
        const next = standing && (id === null || standing.logId === id) ? standing.offset : low;
        const from = next > low ? next : low;
        return behind + (high > from ? high - from : 0n);
    }, 0n);
}
