import { pause } from "../lifecycle.js";
import { Places } from "./places.js";
import { topicIds } from "./topic-id.js";
const HEARTBEAT_MS = 2_000;
/** How long a consumer that ends waits for Kafka to hear of it. */
const GOODBYE_MS = 5_000;
/** How soon it shows that the store was set back, or the topic made again, where no batch shows it. */
const LOOK_EVERY_MS = 3_000;
/** After a crash, what the dead process read waits for so long. Longer than the event loop may ever be blocked. */
const SESSION_MS = 10_000;
const keyOf = ({ topic, partition }) => `${topic}/${partition}`;
const backOff = (failures) => Math.min(30_000, 200 * 2 ** failures);
/** The life of one KafkaJS consumer: from connecting until stopped, or until it crashes. */
export class ConsumerSession {
    #options;
    #signal;
    #consumer;
    #admin;
    #places = new Places();
    /** Grows with every assignment: what was begun under an earlier one must not touch positions any more. */
    #generation = 0;
    #ids;
    /** Where the store should stand: what it said when reading began, or the end of the last batch that it stored. */
    #stored = new Map();
    #inHand = new Map();
    #failures = new Map();
    #background = new Set();
    #isLooking = false;
    #over;
    #crash = () => undefined;
    constructor(kafka, options, signal) {
        this.#options = options;
        this.#signal = signal;
        this.#admin = kafka.admin();
        this.#ids = topicIds(kafka);
        this.#consumer = kafka.consumer({
            groupId: options.groupId,
            allowAutoTopicCreation: false,
            heartbeatInterval: HEARTBEAT_MS,
            sessionTimeout: SESSION_MS,
            maxBytesPerPartition: options.maxBytesPerPartition ?? 128 * 1024,
            minBytes: 1,
            maxWaitTimeInMs: 50,
            // KafkaJS never restarts by itself: one way to recover is easier to trust than two.
            retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries: 6, restartOnFailure: async () => false },
        });
        this.#over = new Promise((_, reject) => {
            this.#crash = reject;
        });
        // Awaited in run(), but it may reject before run() comes to it.
        this.#over.catch(() => undefined);
    }
    /** Whether the group was ever joined. */
    get joined() {
        return this.#generation > 0;
    }
    reading() {
        return this.#places.known();
    }
    /** Resolves when stopped by the signal; rejects with what made the consumer crash. */
    async run() {
        const { GROUP_JOIN, END_BATCH_PROCESS, CRASH, FETCH, HEARTBEAT } = this.#consumer.events;
        for (const answered of [GROUP_JOIN, FETCH, HEARTBEAT])
            this.#consumer.on(answered, () => this.#options.sign?.());
        this.#consumer.on(GROUP_JOIN, ({ payload }) => this.#assigned(payload.memberAssignment));
        this.#consumer.on(CRASH, ({ payload }) => this.#crash(payload.error));
        this.#consumer.on(END_BATCH_PROCESS, ({ payload }) => {
            const { batchSize, firstOffset, lastOffset } = payload;
            if (batchSize === 0)
                this.#places.passedOver(keyOf(payload), BigInt(firstOffset ?? lastOffset), BigInt(lastOffset));
        });
        try {
            await this.#admin.connect();
            await this.#consumer.connect();
            await this.#consumer.subscribe({ topics: this.#options.topics, fromBeginning: true });
            await this.#consumer.run({
                autoCommit: false,
                eachBatchAutoResolve: false,
                partitionsConsumedConcurrently: this.#options.partitionsAtOnce,
                eachBatch: (payload) => this.#eachBatch(payload),
            });
            const looking = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS);
            try {
                await Promise.race([this.#over, aborted(this.#signal)]);
            }
            finally {
                clearInterval(looking);
            }
        }
        finally {
            await this.#close();
        }
    }
    /** A batch in hand is waited for; Kafka, which may be silent, only for a moment. */
    async #close() {
        this.#places.clear();
        this.#generation++;
        const over = new AbortController();
        const goodbye = Promise.all([this.#disconnect(), ...this.#background]);
        await Promise.race([goodbye, pause(GOODBYE_MS, over.signal)]);
        over.abort();
        await Promise.all(this.#inHand.values());
    }
    async #disconnect() {
        for (const disconnect of [
            () => this.#consumer.disconnect(),
            () => this.#admin.disconnect(),
            () => this.#ids.close(),
        ]) {
            await disconnect().catch((error) => {
                this.#options.log.debug({ err: error }, 'Kafka client did not disconnect cleanly');
            });
        }
    }
    /** Nothing is fetched before it is known where each partition begins: KafkaJS would use its own offsets. */
    #assigned(assignment) {
        this.#generation++;
        this.#places.clear();
        this.#stored.clear();
        this.#failures.clear();
        for (const [topic, partitions] of Object.entries(assignment)) {
            for (const partition of partitions)
                this.#place({ topic, partition });
        }
    }
    /** Pauses the partition until the caller's offset for it is known, then goes on from there. */
    #place(at) {
        const generation = this.#generation;
        this.#pause(at);
        this.#inBackground(async () => {
            // A batch of an earlier assignment may still be on its way into the caller's store.
            await this.#inHand.get(keyOf(at));
            for (let failures = 0; this.#isCurrent(generation); failures++) {
                try {
                    const stored = await this.#begin(at);
                    if (this.#isCurrent(generation))
                        this.#goOnAt(at, stored);
                    return;
                }
                catch (error) {
                    const retryInMs = backOff(failures);
                    this.#options.log.warn({ err: error, ...at, retryInMs }, 'where to read from is not known yet');
                    await pause(retryInMs, this.#signal);
                }
            }
        });
    }
    #begin(at) {
        const generation = this.#generation;
        return this.#options.begin(at, async () => {
            const log = await this.#log(at);
            // What comes from a consumer that was given up is not a look at the log of now.
            if (!this.#isCurrent(generation))
                throw new Error('the partitions were assigned anew meanwhile');
            return log;
        });
    }
    #goOnAt(at, stored) {
        this.#stored.set(keyOf(at), stored);
        this.#places.expect(keyOf(at), stored.offset);
        this.#consumer.seek({ ...at, offset: stored.offset.toString() });
        this.#resume(at);
    }
    /** The id first: of a topic that is made again meanwhile, the range is never taken for that of the newer one. */
    async #log({ topic, partition }) {
        const id = await this.#ids.idOf(topic);
        const range = (await this.#admin.fetchTopicOffsets(topic)).find((one) => one.partition === partition);
        if (!range)
            throw new Error(`topic ${topic} has no partition ${partition}`);
        return { id, low: BigInt(range.low), high: BigInt(range.high) };
    }
    /** Where nothing arrives, no batch would show that the store was set back, or the topic made again. */
    #lookAgain() {
        if (this.#isLooking)
            return;
        this.#isLooking = true;
        this.#inBackground(async () => {
            for (const [key, before] of this.#stored)
                await this.#compare(key, before);
            this.#isLooking = false;
        });
    }
    async #compare(key, before) {
        if (this.#inHand.has(key))
            return;
        const generation = this.#generation;
        const [topic = '', partition] = key.split('/');
        const at = { topic, partition: Number(partition) };
        try {
            const stored = await this.#begin(at);
            const moved = stored.offset < before.offset || stored.logId !== before.logId;
            if (moved && this.#isCurrent(generation))
                this.#place(at);
        }
        catch (error) {
            this.#options.log.debug({ err: error, ...at }, 'whether the store was set back is not known now');
        }
    }
    async #eachBatch(payload) {
        const { batch } = payload;
        const key = keyOf(batch);
        const next = this.#places.next(key);
        if (next === undefined)
            return;
        const fetched = BigInt(batch.fetchedOffset);
        if (!this.#places.admits(key, fetched)) {
            this.#options.log.debug({ ...place(batch), expected: String(next), fetched: String(fetched) }, 'batch turned away');
            this.#place(place(batch));
            return;
        }
        const work = this.#work(payload);
        this.#inHand.set(key, work);
        await work;
        if (this.#inHand.get(key) === work)
            this.#inHand.delete(key);
    }
    /** Never rejects: KafkaJS would throw everything away and join the group again. */
    async #work({ batch, heartbeat, resolveOffset }) {
        const generation = this.#generation;
        const at = place(batch);
        const last = batch.messages.at(-1);
        if (!last)
            return;
        const records = batch.messages.map(toRecord);
        const nextOffset = BigInt(batch.lastOffset()) + 1n;
        const beat = setInterval(() => {
            // A rebalance shows here as an error; the runner meets it again after this batch, and joins anew.
            heartbeat().catch(() => undefined);
        }, HEARTBEAT_MS);
        try {
            const stored = this.#stored.get(keyOf(at));
            if (!stored)
                return;
            // Asked for after the fetch: the records are of this log, or of an earlier one.
            const logId = await this.#ids.idOf(at.topic);
            if (logId !== null && stored.logId !== null && logId !== stored.logId) {
                throw new Error(`topic ${at.topic} was deleted and made again`);
            }
            await this.#options.handler({ ...at, records, nextOffset, stored });
            if (!this.#isCurrent(generation))
                return;
            this.#failures.delete(keyOf(at));
            this.#stored.set(keyOf(at), { ...stored, offset: nextOffset });
            this.#places.expect(keyOf(at), nextOffset);
            resolveOffset(last.offset);
            this.#commitForLag(at, nextOffset);
        }
        catch (error) {
            if (this.#isCurrent(generation))
                this.#tryAgainLater(at, error);
        }
        finally {
            clearInterval(beat);
        }
    }
    #tryAgainLater(at, error) {
        const generation = this.#generation;
        const failures = this.#failures.get(keyOf(at)) ?? 0;
        this.#failures.set(keyOf(at), failures + 1);
        const retryInMs = backOff(failures);
        this.#options.log.error({ err: error, ...at, retryInMs }, 'batch could not be stored, partition paused');
        this.#pause(at);
        this.#inBackground(async () => {
            await pause(retryInMs, this.#signal);
            if (this.#isCurrent(generation))
                this.#place(at);
        });
    }
    #commitForLag(at, offset) {
        this.#inBackground(async () => {
            try {
                await this.#consumer.commitOffsets([{ ...at, offset: offset.toString() }]);
            }
            catch (error) {
                this.#options.log.debug({ err: error, ...at }, 'offset not committed to Kafka');
            }
        });
    }
    #isCurrent(generation) {
        return generation === this.#generation && !this.#signal.aborted;
    }
    #pause({ topic, partition }) {
        this.#consumer.pause([{ topic, partitions: [partition] }]);
    }
    #resume({ topic, partition }) {
        this.#consumer.resume([{ topic, partitions: [partition] }]);
    }
    #inBackground(work) {
        const running = work().finally(() => this.#background.delete(running));
        this.#background.add(running);
    }
}
const place = ({ topic, partition }) => ({ topic, partition });
const toRecord = (message) => ({
    unreadable: message.unreadable,
    offset: BigInt(message.offset),
    key: message.key,
    value: message.value,
    headers: message.headers ?? {},
    timestamp: Number(message.timestamp),
});
const aborted = (signal) => new Promise((resolve) => {
    if (signal.aborted)
        resolve();
    else
        signal.addEventListener('abort', () => resolve(), { once: true });
});
