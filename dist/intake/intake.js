import { storeOutbox } from "../ledger/ledger.js";
import { headerText } from "../platform/kafka/records.js";
import { blame, TRIES_ALONE } from "../platform/postgres.js";
import { readTraceparent } from "../platform/traceparent.js";
import { accept } from "./accept.js";
import { deadLetter } from "./dead-letter.js";
import { lockBeforeCancels, storeCancels } from "./overtaken.js";
import { understand } from "./read.js";
import { declareBatches } from "./sql/batches.js";
import { lockStanding, moveOffset } from "./sql/offsets.js";
/** The ledger stands before a batch that was fetched for it: it has forgotten commands, which must be read again first. */
class LedgerForgot extends Error {
    constructor({ topic, partition }, expected, found) {
        super(`the ledger has read partition ${partition} of ${topic} up to ${found ? inWords(found) : 'nothing'}, and had read ` +
            `it up to ${inWords(expected)}: it was set back (a failover, or a restore), so it is read again from there`);
    }
}
const inWords = ({ offset, logId }) => logId === null ? `offset ${offset}` : `offset ${offset} of log ${logId}`;
/** How many records one transaction takes: larger ones gain nothing and hold locks for longer. */
const CHUNK = 500;
/**
 * Takes one fetched batch of commands in. Resolves once everything is in the ledger with its offsets;
 * rejects when the database or the registry is down, or the ledger was set back: then the ledger is to be asked where
 * it stands, and what follows there handed in.
 */
export async function takeIn(batch, deps) {
    const { topic, partition, stored, records, nextOffset } = batch;
    const origin = { topic, partition, logId: stored.logId };
    let from = stored.offset;
    for (let begin = 0; begin < records.length; begin += CHUNK) {
        const reads = [];
        for (const record of records.slice(begin, begin + CHUNK)) {
            reads.push({ record, understood: await read(record, origin, deps) });
        }
        const until = records[begin + CHUNK]?.offset ?? nextOffset;
        await store(origin, { reads, from, until }, deps);
        from = until;
    }
}
async function read(record, origin, deps) {
    const { unreadable, offset } = record;
    if (!unreadable)
        return understand(await deps.decode(record.value), deps.terms);
    const { topic, partition } = origin;
    deps.log.error({ topic, partition, offset, ...unreadable }, 'what stands in Kafka cannot be read');
    return { kind: 'dead', reason: unreadable.reason };
}
/**
 * One transaction: payouts, history, outbox and the batch's offsets. Where the database itself refuses
 * the data, halves are tried down to the single record, which is dead-lettered: one bad record never
 * stops a partition.
 */
async function store(origin, slice, deps, triesAlone = 1) {
    try {
        const tally = await deps.ledger.db.transaction('take in commands', (tx) => storeSlice(tx, origin, slice, deps));
        deps.counted.inc({ outcome: 'accepted' }, tally.accepted);
        deps.counted.inc({ outcome: 'repeated' }, tally.repeated);
        deps.counted.inc({ outcome: 'contradicts' }, tally.contradicting);
        deps.counted.inc({ outcome: 'dead-lettered' }, tally.dead.length);
        if (tally.dead.length > 0) {
            const { topic, partition } = origin;
            deps.log.warn({ topic, partition, count: tally.dead.length, reasons: [...new Set(tally.dead)] }, 'commands were dead-lettered: payoutd dlq list shows them');
        }
    }
    catch (error) {
        const fault = blame(error);
        if (fault === 'database' || error instanceof LedgerForgot)
            throw error;
        const { reads, from, until } = slice;
        if (reads.length > 1) {
            const middle = Math.ceil(reads.length / 2);
            const between = reads[middle].record.offset;
            await store(origin, { reads: reads.slice(0, middle), from, until: between }, deps);
            await store(origin, { reads: reads.slice(middle), from: between, until }, deps);
            return;
        }
        const [read] = reads;
        if (read.understood.kind === 'dead')
            throw error;
        if (fault === 'unclear' && triesAlone < TRIES_ALONE) {
            await store(origin, slice, deps, triesAlone + 1);
            return;
        }
        deps.log.warn({ err: error, ...position(origin, read) }, 'the database refuses this command');
        const dead = { ...read, understood: { kind: 'dead', reason: 'refused-by-database' } };
        await store(origin, { reads: [dead], from, until }, deps);
    }
}
const position = ({ topic, partition }, { record }) => ({
    topic,
    partition,
    offset: record.offset,
});
async function storeSlice(tx, origin, { reads: all, from, until }, deps) {
    const { topic, partition, logId } = origin;
    const [stands] = await tx.run(lockStanding, { topic, partition });
    if (!stands || stands.offset < from || stands.logId !== logId) {
        throw new LedgerForgot(origin, { offset: from, logId }, stands);
    }
    // Another consumer of the partition has stored it.
    if (stands.offset >= until)
        return { accepted: 0, repeated: 0, contradicting: 0, dead: [] };
    const reads = all.filter(({ record }) => record.offset >= stands.offset);
    await lockBeforeCancels(tx, reads.map(({ understood }) => understood));
    const arrivals = reads.flatMap(({ record, understood }) => understood.kind === 'payout'
        ? [{ ...understood, traceparent: readTraceparent(headerText(record.headers, 'traceparent')) }]
        : []);
    const { fresh, contradicting } = await accept(tx, deps.ledger, deps.keys, arrivals);
    const cancels = reads.flatMap(({ understood }) => (understood.kind === 'cancel' ? [understood] : []));
    await storeCancels(tx, deps.ledger, cancels);
    await storeDeclarations(tx, reads);
    const dead = reads.flatMap(({ record, understood }) => understood.kind === 'dead' ? [{ record, reason: understood.reason }] : []);
    const { topics } = deps.ledger;
    await storeOutbox(tx, dead.map(({ record, reason }) => deadLetter(record, origin, reason, topics, deps.keys.sealing)));
    await tx.run(moveOffset, { topic, partition, nextOffset: until });
    const repeated = arrivals.length - fresh - contradicting;
    return { accepted: fresh, repeated, contradicting, dead: dead.map(({ reason }) => reason) };
}
async function storeDeclarations(tx, reads) {
    const batches = reads.flatMap(({ understood }) => understood.kind === 'batch' ? [understood.declaration] : []);
    if (batches.length === 0)
        return;
    await tx.run(declareBatches, {
        merchantIds: batches.map(({ merchantId }) => merchantId),
        batchIds: batches.map(({ batchId }) => batchId),
        rows: batches.map(({ rows }) => rows),
        amounts: batches.map(({ amount }) => amount),
        refused: batches.map(({ refused }) => refused),
        fileHashes: batches.map(({ fileHash }) => fileHash),
        declaredAts: batches.map(({ declaredAt }) => declaredAt),
    });
}
