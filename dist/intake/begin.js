import { storeDecisions } from "../ledger/ledger.js";
import { startAt } from "../platform/kafka/places.js";
import { beginAt, standing } from "./sql/offsets.js";
/**
 * Where intake reads a partition on. What was lost between the ledger and Kafka is passed over once, and never in silence:
 * it is an anomaly of every merchant, as nobody can say whose commands they were.
 */
export async function begin(at, logOf, { ledger, merchantIds, log }) {
    for (;;) {
        const [before] = await ledger.db.run(standing, at);
        const held = await logOf();
        const start = startAt(before ?? null, held);
        const begun = { offset: start.offset, logId: held.id ?? before?.logId ?? null };
        if (before && start.remark === 'none' && before.logId === begun.logId)
            return before;
        const lost = before ? lossOf(at, before, held, start.remark) : null;
        const isBegun = await ledger.db.transaction('begin partition', async (tx) => {
            const compared = { before: before?.offset ?? null, beforeLogId: before?.logId ?? null };
            const [moved] = await tx.run(beginAt, { ...at, ...begun, ...compared });
            if (moved && lost)
                await storeDecisions(tx, ledger, merchantIds.map(anomalyOf(lost)));
            return moved !== undefined;
        });
        if (!isBegun)
            continue;
        if (lost)
            log.error({ ...at, kind: lost.kind }, lost.detail);
        return begun;
    }
}
/** In words, with the offsets that are concerned. */
function lossOf({ topic, partition }, before, { id, low, high }, remark) {
    const where = `partition ${partition} of ${topic}`;
    switch (remark) {
        case 'none':
            return null;
        case 'records-gone':
            return {
                kind: 'commands-lost',
                detail: `Kafka dropped the offsets ${before.offset} to ${low - 1n} of ${where} before payoutd had read them: ` +
                    'whoever sent commands there sends those again that have no result (identical repeats do no harm)',
            };
        case 'log-is-older':
            return {
                kind: 'commands-replaced',
                detail: `${where} ends at offset ${high}, and payoutd had read it up to ${before.offset}: Kafka lost a part of it, ` +
                    'so all that it holds is read again, and commands that were lost have to be sent again',
            };
        case 'another-log':
            return {
                kind: 'commands-replaced',
                detail: `${topic} was deleted and made again (its id was ${before.logId} and is ${id}): ${where}, which payoutd had ` +
                    `read up to offset ${before.offset}, is read from ${low} on; commands of the old topic that payoutd ` +
                    'had not read have to be sent again',
            };
    }
}
const anomalyOf = ({ kind, detail }) => (merchantId) => ({
    anomaly: {
        merchantId,
        payoutId: null,
        orderNo: null,
        kind,
        detail,
        source: 'COMMAND',
        exchange: null,
    },
});
