import { schemaSubjects } from "../ledger/topics.js";
import { connectAdmin } from "../platform/kafka/admin.js";
import { openCodec } from "../platform/kafka/codec.js";
import { createPublisher } from "../platform/kafka/producer.js";
import { connectRegistry } from "../platform/kafka/registry.js";
/** Connects to Kafka and the registry. Throws when one of them cannot be reached or refuses. */
export async function openOutlet(options) {
    const { kafka, registry, topics, log } = options;
    const subjects = schemaSubjects(topics).filter(({ topic }) => topic === topics.commands);
    const codec = await openCodec(connectRegistry(registry), subjects);
    const admin = await connectAdmin(kafka, log);
    const clusterId = await admin.clusterId().finally(() => admin.close());
    const publisher = createPublisher('ingest', kafka, log);
    return {
        destination: { clusterId, topic: topics.commands },
        encodeDeclared: codec.encoder(topics.commands, 'in.payoutd.PayoutBatchDeclared'),
        encodeRequested: codec.encoder(topics.commands, 'in.payoutd.PayoutRequested'),
        publish: (records) => publisher.publish(records),
        close: () => publisher.close(),
    };
}
