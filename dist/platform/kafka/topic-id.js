// @ts-expect-error: inside KafkaJS, not part of its types
import Decoder from 'kafkajs/src/protocol/decoder.js';
// @ts-expect-error: inside KafkaJS, not part of its types
import Encoder from 'kafkajs/src/protocol/encoder.js';
/** Ids come with version 10 of Metadata (KIP-516), and KafkaJS 2.2.4 speaks version 6. */
const METADATA = 3;
const VERSION = 10;
const NO_ID = Buffer.alloc(16);
/** Connects with the first question. */
export function topicIds(kafka) {
    const cluster = clusterOf(kafka);
    let connected;
    const connect = () => {
        connected ??= cluster
            .connect()
            .then(() => cluster.refreshMetadata())
            .catch((error) => {
            connected = undefined;
            throw error;
        });
        return connected;
    };
    return {
        async idOf(topic) {
            await connect();
            const { versions, connectionPool } = await cluster.brokerPool.findConnectedBroker();
            if ((versions[METADATA]?.maxVersion ?? 0) < VERSION)
                return null;
            return connectionPool.send(metadataOf(topic));
        },
        close: () => cluster.disconnect(),
    };
}
/** KafkaJS keeps the way to its brokers to itself. */
function clusterOf(kafka) {
    const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster');
    if (!symbol)
        throw new Error('this KafkaJS is another than the one that topic-id.ts was written for (2.2.4)');
    const create = kafka[symbol];
    return create({ allowAutoTopicCreation: false });
}
/** Metadata version 10 about one topic, in the form of KafkaJS's own requests. */
const metadataOf = (topic) => ({
    request: {
        apiKey: METADATA,
        apiVersion: VERSION,
        apiName: 'Metadata',
        encode: async () => new Encoder()
            .writeUVarInt(0) // no tagged fields in the header
            .writeUVarInt(1 + 1) // one topic
            .writeInt64('0') // whose id is not known yet
            .writeInt64('0')
            .writeUVarIntString(topic)
            .writeUVarInt(0)
            .writeBoolean(false) // do not make it
            .writeBoolean(false)
            .writeBoolean(false)
            .writeUVarInt(0),
    },
    response: {
        decode: async (bytes) => new Decoder(bytes),
        parse: async (reader) => readId(reader, topic),
    },
});
function readId(reader, topic) {
    reader.readTaggedFields();
    reader.readInt32(); // throttle time
    reader.readUVarIntArray((broker) => {
        broker.readInt32();
        broker.readUVarIntString();
        broker.readInt32();
        broker.readUVarIntString();
        broker.readTaggedFields();
    });
    reader.readUVarIntString(); // cluster id
    reader.readInt32(); // controller
    const [first] = reader.readUVarIntArray((each) => {
        const errorCode = each.readInt16();
        each.readUVarIntString();
        const id = Buffer.from(each.buffer.subarray(each.offset, each.offset + NO_ID.length));
        each.forward(NO_ID.length);
        each.readBoolean();
        each.readUVarIntArray((partition) => {
            partition.readInt16();
            for (let i = 0; i < 3; i++)
                partition.readInt32();
            for (let i = 0; i < 3; i++)
                partition.readUVarIntArray((replica) => replica.readInt32());
            partition.readTaggedFields();
        });
        each.readInt32();
        each.readTaggedFields();
        return { errorCode, id };
    });
    if (!first || first.id.equals(NO_ID)) {
        throw new Error(`Kafka does not tell the id of topic ${topic} (error code ${first?.errorCode})`);
    }
    return first.id.toString('base64url');
}
