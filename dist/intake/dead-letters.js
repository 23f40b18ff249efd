import { headerText } from "../platform/kafka/records.js";
import { DoesNotOpen } from "../platform/seal.js";
import { openDeadLetter } from "./dead-letter.js";
import { keepReplays, replaysOf } from "./sql/replays.js";
/** `2:17`: where a dead letter stands in its topic, as people name it. */
export const positionOf = ({ partition, offset }) => `${partition}:${offset}`;
/**
 * All dead letters, in the order of the records that they were. A repeat (the relay publishes at least once) is left
 * out. All of them are in memory at once.
 */
export async function readDeadLetters(topics, { db, readTopic }) {
    const topic = topics.deadLetters;
    const replays = new Map((await db.run(replaysOf, { topic })).map((replay) => [
        positionOf({ partition: replay.partition, offset: replay.position }),
        replay,
    ]));
    const letters = new Map();
    await readTopic(topic, ({ partition, offset, timestamp, headers, value }) => {
        const position = positionOf({ partition, offset });
        const origin = headerText(headers, 'origin') ?? '';
        const letter = {
            partition,
            offset,
            at: timestamp,
            reason: headerText(headers, 'reason') ?? 'not-from-payoutd',
            origin,
            sealed: value ?? Buffer.alloc(0),
            replayed: replays.get(position) ?? null,
        };
        const name = origin === '' ? position : origin;
        if (!letters.has(name))
            letters.set(name, letter);
    });
    return [...letters.values()].sort(byOrigin);
}
/** What is inside; null: none of the encryption keys at hand opens it. */
export function openLetter({ sealed, origin }, keys) {
    try {
        return openDeadLetter(sealed, origin, keys);
    }
    catch (error) {
        if (error instanceof DoesNotOpen)
            return null;
        throw error;
    }
}
/** A replay's records are published and remembered so many at a time. */
const CHUNK = 200;
/**
 * Publishes what the letters hold as commands once more, in this order: intake decides about them as about any
 * command. Who did it is remembered after the publishing: one that is interrupted in between is published again
 * by the next replay, and intake finds it repeated.
 */
export async function replay(opened, who, { db, topics, publish }) {
    for (let from = 0; from < opened.length; from += CHUNK) {
        const chunk = opened.slice(from, from + CHUNK);
        await publish(chunk.map(({ original: { key, value, headers } }) => ({ topic: topics.commands, key, value, headers })));
        await db.write('keep replays', keepReplays, {
            ...who,
            topic: topics.deadLetters,
            partitions: chunk.map(({ letter }) => letter.partition),
            positions: chunk.map(({ letter }) => letter.offset),
        });
    }
}
function byOrigin(a, b) {
    const [one, other] = [placeOf(a), placeOf(b)];
    return one.log.localeCompare(other.log) || Number(one.offset - other.offset);
}
function placeOf({ origin, partition, offset }) {
    const [, log, at] = /^(.*):(\d+)$/.exec(origin) ?? [];
    return at === undefined ? { log: `?${partition}`, offset } : { log: log ?? '', offset: BigInt(at) };
}
