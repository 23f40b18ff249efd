import { RefusedByKafka } from "../platform/kafka/producer.js";
import { addShards, forget, leaveShards, nextMessages, setAside, takeShards, } from "./sql/outbox.js";
const LEASE_MS = 10_000;
/** Renewed well before it ends, so that a slow publish does not lose it. */
const RENEW_MS = 3_000;
const PER_SHARD = 250;
const IDLE_MS = 20;
/**
 * Moves outbox rows to Kafka: read, publish, delete. A crash between publish and delete repeats the
 * messages under the same event ids. Any number of relays may run: each shard has one owner by lease, and
 * one that was frozen past its lease can only repeat what its successor published. A message that Kafka refuses is put
 * aside, so that it stops no other: later ones of its key go on, and who reads the topic finds a gap in the versions.
 */
export class Relay {
    #deps;
    #renewAt = 0;
    constructor(deps) {
        this.#deps = deps;
    }
    /** One turn of the loop at `now` (monotonic ms); returns how many ms to wait before the next. */
    async turn(now) {
        if (now >= this.#renewAt)
            await this.#renew(now);
        const rows = await this.#deps.db.run(nextMessages, { owner: this.#deps.owner, limit: PER_SHARD });
        if (rows.length === 0)
            return IDLE_MS;
        const refusals = await this.#publish(rows);
        const published = rows.filter((row) => !refusals.has(row));
        await this.#deps.db.write('forget published', forget, {
            shards: published.map(({ shard }) => shard),
            positions: published.map(({ position }) => position),
        });
        for (const { topic } of published)
            this.#deps.published.inc({ topic });
        for (const [row, reason] of refusals)
            await this.#setAside(row, reason);
        return 0;
    }
    /** Returns what Kafka refuses, with its reason; it has everything else. */
    async #publish(rows) {
        const messages = new Map(rows.map((row) => [toMessage(row), row]));
        try {
            await this.#deps.publish([...messages.keys()]);
            return new Map();
        }
        catch (error) {
            if (!(error instanceof RefusedByKafka))
                throw error;
            return new Map(error.refused.map(({ record, reason }) => [messages.get(record), reason]));
        }
    }
    async #setAside({ shard, position, topic, key, eventId, type, value }, reason) {
        await this.#deps.db.write('set refused aside', setAside, { shard, position, reason });
        this.#deps.refused.inc({ topic, reason });
        this.#deps.log.error({ topic, key, eventId, type, bytes: value.length, reason }, 'Kafka refuses this message, which nobody will read: payoutd outbox list shows it, payoutd outbox retry publishes it once Kafka takes it');
    }
    /** Hands its shards to whoever comes next. */
    async leave() {
        await this.#deps.db.write('leave shards', leaveShards, { owner: this.#deps.owner });
    }
    async #renew(now) {
        const { db, owner, shards } = this.#deps;
        await db.write('add shards', addShards, { shards });
        await db.write('take shards', takeShards, { owner, leaseMs: LEASE_MS });
        this.#renewAt = now + RENEW_MS;
    }
}
/** CloudEvents in the binary mode of its Kafka binding. */
function toMessage({ topic, key, eventId, type, value, headers, at }) {
    return {
        topic,
        key,
        value,
        headers: {
            ce_specversion: '1.0',
            ce_id: eventId,
            ce_type: type,
            ce_source: 'payoutd',
            ce_time: new Date(at).toISOString(),
            ...headers,
        },
    };
}
