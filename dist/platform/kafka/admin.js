import { setTimeout as delay } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { kafkaFor } from "./connection.js";
import { topicIds } from "./topic-id.js";
const ATTEMPTS = 10;
const PAUSE_MS = 300;
/** Throws when no broker can be reached. */
export async function connectAdmin(connection, log) {
    const kafka = kafkaFor(connection, log);
    const admin = kafka.admin();
    const ids = topicIds(kafka);
    await admin.connect();
    const existing = async (names) => {
        const all = new Set(await admin.listTopics());
        return names.filter((name) => all.has(name));
    };
    return {
        async createTopics(specs) {
            const present = await existing(specs.map(({ name }) => name));
            const missing = specs.filter(({ name }) => !present.includes(name));
            if (missing.length === 0)
                return [];
            try {
                // KafkaJS's own wait gives up where it asks a broker that has not heard of the new topics yet.
                await admin.createTopics({ waitForLeaders: false, topics: missing.map(toKafkaJs) });
            }
            catch (error) {
                if (!(await madeByAnother(error, missing)))
                    throw error;
            }
            const topics = missing.map(({ name }) => name);
            await patiently(() => admin.fetchTopicMetadata({ topics }));
            return topics;
        },
        async describeTopics(names) {
            const present = await existing(names);
            if (present.length === 0)
                return [];
            const [{ topics }, { resources }] = await Promise.all([
                admin.fetchTopicMetadata({ topics: present }),
                admin.describeConfigs({
                    includeSynonyms: false,
                    resources: present.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
                }),
            ]);
            return topics.map(({ name, partitions }) => {
                const entries = resources.find(({ resourceName }) => resourceName === name)?.configEntries ?? [];
                return {
                    name,
                    partitions: partitions.length,
                    replication: Math.min(...partitions.map(({ replicas }) => replicas.length)),
                    configs: Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue])),
                };
            });
        },
        ranges,
        async logs(topic) {
            const id = await ids.idOf(topic);
            return (await ranges(topic)).map((range) => ({ id, ...range }));
        },
        async lag(groupId, topics) {
            // A Kafka that is new makes its topic of offsets when it is first asked, and has no coordinator until then.
            const committed = await patiently(() => admin.fetchOffsets({ groupId, topics: [...topics] }));
            const lags = topics.map(async (topic) => {
                const offsets = committed.find((one) => one.topic === topic)?.partitions ?? [];
                return (await offsetsOf(topic)).map(({ partition, low, high }) => {
                    const offset = BigInt(offsets.find((one) => one.partition === partition)?.offset ?? -1);
                    const from = offset < 0n ? BigInt(low) : offset;
                    return { topic, partition, committed: offset < 0n ? null : offset, lag: BigInt(high) - from };
                });
            });
            return (await Promise.all(lags)).flat();
        },
        clusterId: async () => (await admin.describeCluster()).clusterId,
        async close() {
            await admin.disconnect();
            await ids.close();
        },
    };
    async function ranges(topic) {
        return (await offsetsOf(topic)).map(({ partition, low, high }) => ({
            partition,
            low: BigInt(low),
            high: BigInt(high),
        }));
    }
    /** Right after a topic was made, or has a new leader, the one that is asked may not know yet that it leads. */
    function offsetsOf(topic) {
        return patiently(() => admin.fetchTopicOffsets(topic));
    }
    /** Two processes may set up the same topics at the same time. */
    async function madeByAnother(error, specs) {
        if (!(error instanceof kafkajs.KafkaJSAggregateError))
            return false;
        return (await existing(specs.map(({ name }) => name))).length === specs.length;
    }
}
/** Asks again, some times, where Kafka does not know yet. */
async function patiently(ask) {
    for (let attempt = 1;; attempt++) {
        try {
            return await ask();
        }
        catch (error) {
            const retriable = error instanceof kafkajs.KafkaJSError && error.retriable;
            if (!retriable || attempt === ATTEMPTS)
                throw error;
            await delay(PAUSE_MS);
        }
    }
}
const toKafkaJs = ({ name, partitions, replication, configs }) => ({
    topic: name,
    numPartitions: partitions,
    replicationFactor: replication,
    configEntries: Object.entries(configs).map(([configName, value]) => ({ name: configName, value })),
});
