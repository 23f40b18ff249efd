import { kafkaFor } from "./connection.js";
const ANSWER_WITHIN_MS = 3_000;
/** Asks Kafka again and again whether it is there. After a failure the next question goes over a new connection. */
export function kafkaPing(connection, log) {
    const kafka = kafkaFor({ ...connection, requestTimeout: ANSWER_WITHIN_MS }, log);
    let admin;
    return {
        async ping() {
            const asked = admin ?? kafka.admin({ retry: { retries: 0 } });
            admin = asked;
            try {
                await asked.connect();
                await asked.describeCluster();
            }
            catch (error) {
                admin = undefined;
                // On a connection without an answer it would take its time.
                asked
                    .disconnect()
                    .catch((cause) => log.debug({ err: cause }, 'Kafka client did not disconnect'));
                throw error;
            }
        },
        async close() {
            await admin?.disconnect();
        },
    };
}
