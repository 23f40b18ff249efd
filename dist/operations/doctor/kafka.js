import { pause } from "../../platform/lifecycle.js";
import { good, wrong } from "./examine.js";
import { judgeTopics } from "./topics.js";
const LOOK_AGAIN_MS = 2_000;
const NEVER = new AbortController().signal;
export function kafkaChecks({ connect, address, specs, groupId, commands }) {
    let connection;
    const admin = () => (connection ??= connect());
    const lag = async () => (await admin()).lag(groupId, [commands]);
    return [
        {
            name: 'Kafka',
            run: async () => {
                // Connecting proves little: KafkaJS also "connects" to a web server.
                await (await admin()).describeTopics([]);
                return good(`Kafka at ${address} answers`);
            },
        },
        {
            name: 'topics',
            needs: ['Kafka'],
            run: async () => judgeTopics(specs, await (await admin()).describeTopics(specs.map(({ name }) => name))),
        },
        {
            name: 'consumer lag',
            needs: ['topics'],
            run: async () => {
                const first = await lag();
                if (total(first) === 0n)
                    return judgeLag(first, first, commands);
                await pause(LOOK_AGAIN_MS, NEVER);
                return judgeLag(first, await lag(), commands);
            },
        },
    ];
}
const total = (lags) => lags.reduce((sum, { lag }) => sum + lag, 0n);
const read = (lags) => lags.reduce((sum, { committed }) => sum + (committed ?? 0n), 0n);
/** A backlog is well as long as it is worked on between two looks. */
export function judgeLag(before, after, commands) {
    const waiting = total(after);
    if (waiting === 0n)
        return good(`no command waits in ${commands}`);
    if (read(after) > read(before))
        return good(`${waiting} commands wait in ${commands} and are being taken in`);
    return wrong(`${waiting} commands wait in ${commands} and nobody takes them in`, 'start payoutd serve with the role intake, or look at its log');
}
