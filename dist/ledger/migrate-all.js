import { connectAdmin } from "../platform/kafka/admin.js";
import { registerSchemas } from "../platform/kafka/codec.js";
import { connectRegistry } from "../platform/kafka/registry.js";
import { migrate } from "./migrate.js";
import { schemaSubjects, topicNames, topicSpecs } from "./topics.js";
/** Tables, topics and schemas; returns what was new of each. Throws with the reason of whoever refuses. */
export async function migrateAll(places, log) {
    const topics = topicNames(places.topicPrefix);
    const subjects = schemaSubjects(topics);
    const tables = await migrate(places.databaseUrl, log);
    const admin = await connectAdmin(places.kafka, log);
    try {
        const created = await admin.createTopics(topicSpecs(topics, places.topics));
        await registerSchemas(connectRegistry(places.registry), subjects);
        return { tables, topics: created, schemas: subjects.length };
    }
    finally {
        await admin.close();
    }
}
