import { pause } from "../lifecycle.js";
import { kafkaFor } from "./connection.js";
import { ConsumerSession } from "./consumer-session.js";
/**
 * Reads topics as a member of a consumer group, at least once and without a gap, until stopped. Offsets are
 * committed to Kafka for the sake of lag only. KafkaJS stops for good after some failures, so every crash,
 * of whatever kind, ends in a new consumer.
 */
export function consumeBatches(options) {
    const abort = new AbortController();
    let session;
    const running = (async () => {
        for (let failures = 0; !abort.signal.aborted; failures++) {
            options.sign?.();
            session = new ConsumerSession(kafkaFor(options.connection, options.log), options, abort.signal);
            try {
                await session.run();
            }
            catch (error) {
                if (session.joined)
                    failures = 0;
                const retryInMs = Math.min(10_000, 250 * 2 ** failures);
                const line = { err: error, groupId: options.groupId, retryInMs };
                if (failures === 0)
                    options.log.warn(line, 'Kafka consumer lost, starting anew until it reads again');
                else
                    options.log.debug(line, 'Kafka consumer lost again, starting anew');
                await pause(retryInMs, abort.signal);
            }
        }
    })();
    return {
        reading: () => session?.reading() ?? [],
        async stop() {
            abort.abort();
            await running;
        },
    };
}
