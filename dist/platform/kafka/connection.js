import { Kafka, logLevel } from 'kafkajs';
import { readAllBatches } from "./kafkajs-batches.js";
import { logCreator } from "./kafkajs-log.js";
import { stopNegativeTimers } from "./kafkajs-timers.js";
/** KafkaJS, tuned for a service that keeps trying: nothing is connected yet. */
export function kafkaFor(connection, log) {
    readAllBatches();
    stopNegativeTimers();
    return new Kafka({
        connectionTimeout: 5_000,
        requestTimeout: 30_000,
        // A broker that is frozen, or a connection that is open at this end alone, never answers.
        enforceRequestTimeout: true,
        ...connection,
        retry: { initialRetryTime: 100, maxRetryTime: 3_000, retries: 6 },
        logLevel: logLevel.INFO,
        logCreator: logCreator(log),
    });
}
