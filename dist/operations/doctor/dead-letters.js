import { good, warning } from "./examine.js";
import { replayedOf } from "./sql/replays.js";
export const deadLetterChecks = (db, letters) => [
    {
        name: 'dead letters',
        needs: ['topics', 'migrations'],
        run: async () => judgeDeadLetters(await unreplayed(db, letters)),
    },
];
/**
 * By offsets alone, however many there are, so one that the relay published twice counts twice until the topic
 * drops it.
 */
async function unreplayed(db, { connect, topic }) {
    const admin = await connect();
    try {
        const ranges = await admin.ranges(topic);
        const [replayed] = await db.run(replayedOf, {
            topic,
            partitions: ranges.map(({ partition }) => partition),
            lows: ranges.map(({ low }) => low),
            highs: ranges.map(({ high }) => high),
        });
        return ranges.reduce((sum, { low, high }) => sum + high - low, 0n) - BigInt(replayed?.count ?? 0);
    }
    finally {
        await admin.close();
    }
}
export function judgeDeadLetters(unreplayed) {
    if (unreplayed === 0n)
        return good('no dead letter waits');
    return warning(`${unreplayed} ${unreplayed === 1n ? 'dead letter was' : 'dead letters were'} never replayed: commands of which nothing is in the ledger`, 'payoutd dlq list tells why, payoutd dlq replay tries them again once the reason is gone');
}
