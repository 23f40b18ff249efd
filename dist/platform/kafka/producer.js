import { setTimeout as delay } from 'node:timers/promises';
import kafkajs, { Partitioners } from 'kafkajs';
import { crashPoint } from "../crash-points.js";
import { ExpectedFailure } from "../expected-failure.js";
import { kafkaFor } from "./connection.js";
/** Kafka's own names for what is wrong with a message, and not with Kafka. */
const REFUSALS = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD', 'CORRUPT_MESSAGE']);
/** Kafka refuses these records, each by itself, and would refuse them again. */
export class RefusedByKafka extends ExpectedFailure {
    refused;
    constructor(refused) {
        const about = [...new Set(refused.map(({ record, reason }) => `${record.topic} (${reason})`))];
        super(`Kafka refuses ${refused.length} messages on ${about.join(', ')}: raise max.message.bytes of the topic, or see what it demands of messages`);
        this.refused = refused;
    }
}
/**
 * Brokers refuse a batch of over 1 MB (`message.max.bytes`), and KafkaJS sends one per partition, so a call
 * is cut into requests of less than that even if all of it goes to one partition.
 */
const MAX_REQUEST_BYTES = 768 * 1024;
const RECORD_OVERHEAD = 64;
const RETRIES = 6;
/** A try at a silent broker takes half a minute: whoever publishes hears of it before another one. */
const TRY_FOR_MS = 30_000;
/**
 * Not idempotent: KafkaJS's idempotent producer may have one request in flight only, and consumers of ours
 * recognise a repeat by its event id. Connects with the first call. `name` is that of its crash points.
 */
export function createPublisher(name, connection, log) {
    let current;
    let connects = 0;
    const connected = () => {
        current ??= connect(beginningAt(connects++, connection), log).catch((error) => {
            current = undefined;
            throw error;
        });
        return current;
    };
    const letGo = async (failed) => {
        if ((await current) === failed)
            current = undefined;
        // Waits for what others have sent through it.
        void failed.disconnect().catch(() => undefined);
    };
    /**
     * Each try is a send of everything: KafkaJS's own retry (2.2.4; its pull request 1798) sends nothing more to a
     * broker that has answered, so that a partition that moves there during the send is forgotten, and the send
     * succeeds. And each goes through a new producer that begins at another broker: one whose request was not
     * answered goes on believing that the same broker leads, for minutes, and never gets past a first broker that
     * takes connections and does not answer.
     */
    async function send(records) {
        const topicMessages = byTopic(records);
        const began = performance.now();
        for (let failures = 0;; failures++) {
            const producer = await connected();
            try {
                await producer.sendBatch({ acks: -1, topicMessages });
                return;
            }
            catch (error) {
                if (refusalIn(error) !== null)
                    throw error;
                // What may be tried again comes as this, also after no retry.
                if (!(error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded))
                    throw error;
                await letGo(producer);
                if (failures === RETRIES || performance.now() - began > TRY_FOR_MS)
                    throw error;
                await delay(Math.min(3_000, 100 * 2 ** failures));
            }
        }
    }
    /** What Kafka refuses is halved down to the single record, so that one takes no other along. */
    async function deliver(records) {
        try {
            await send(records);
            return [];
        }
        catch (error) {
            const reason = refusalIn(error);
            if (reason === null)
                throw error;
            if (records.length === 1)
                return records.map((record) => ({ record, reason }));
            const middle = Math.ceil(records.length / 2);
            return [...(await deliver(records.slice(0, middle))), ...(await deliver(records.slice(middle)))];
        }
    }
    return {
        async publish(records) {
            const refused = [];
            for (const request of requests(records)) {
                crashPoint('before publish', name);
                refused.push(...(await deliver(request)));
                crashPoint('after publish', name);
            }
            if (refused.length > 0)
                throw new RefusedByKafka(refused);
        },
        async close() {
            await (await current?.catch(() => undefined))?.disconnect();
        },
    };
}
function beginningAt(place, connection) {
    const { brokers } = connection;
    const first = place % brokers.length;
    return { ...connection, brokers: [...brokers.slice(first), ...brokers.slice(0, first)] };
}
async function connect(connection, log) {
    const producer = kafkaFor(connection, log).producer({
        createPartitioner: Partitioners.DefaultPartitioner,
        allowAutoTopicCreation: false,
        retry: { retries: 0 },
    });
    await producer.connect();
    return producer;
}
/** Null: the error says nothing against the messages. KafkaJS hands on the broker's error, or names it as a cause. */
function refusalIn(error) {
    if (!(error instanceof Error))
        return null;
    const type = 'type' in error ? String(error.type) : '';
    return REFUSALS.has(type) ? type : refusalIn(error.cause);
}
function* requests(records) {
    let request = [];
    let bytes = 0;
    for (const record of records) {
        const size = sizeOf(record);
        if (bytes > 0 && bytes + size > MAX_REQUEST_BYTES) {
            yield request;
            request = [];
            bytes = 0;
        }
        bytes += size;
        request.push(record);
    }
    if (request.length > 0)
        yield request;
}
function byTopic(records) {
    const topics = new Map();
    for (const { topic, key, value, headers } of records) {
        const messages = topics.get(topic)?.messages ?? [];
        if (messages.length === 0)
            topics.set(topic, { topic, messages });
        messages.push(headers ? { key, value, headers } : { key, value });
    }
    return [...topics.values()];
}
function sizeOf({ key, value, headers }) {
    let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0);
    for (const name in headers)
        bytes += name.length + (headers[name]?.length ?? 0) + 4;
    return bytes;
}
