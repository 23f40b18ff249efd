import { eventId } from "../payout/identifiers.js";
import { readPayroll } from "./payroll.js";
/** Rows to a request: larger ones gain nothing, and a crash repeats at most one. */
const ROWS_AT_ONCE = 500;
/**
 * Publishes what the check found payable, in file order: the batch first, then its rows, beginning after
 * those that an earlier run published. Returns how many rows are published now; fewer than there are means
 * that the signal asked to stop. Throws when the file is not the one that was checked any more.
 */
export async function publishPayroll(publication) {
    const { payroll, summary, payable, progress, outlet, payouts, signal, onPublished } = publication;
    let published = progress.published;
    if (published === 0)
        await declare(publication);
    let batch = [];
    const flush = async () => {
        await outlet.publish(batch);
        published += batch.length;
        batch = [];
        await publication.checkpoint.save({ ...progress, published });
        onPublished(published);
    };
    let passed = 0;
    const rows = readPayroll(payroll, () => undefined);
    try {
        let next = await rows.next();
        for (; !next.done; next = await rows.next()) {
            const row = next.value;
            if (!payable.has(row.row))
                continue;
            if (row.kind !== 'payable')
                throw new Error(changed(payroll, published));
            await payouts.add([String(row.row), row.reference, row.command.payoutId]);
            if (passed++ < progress.published)
                continue;
            batch.push(requested({ ...row.command, fileHash: summary.fileHash }, progress, outlet));
            if (batch.length < ROWS_AT_ONCE)
                continue;
            await flush();
            if (signal.aborted)
                return published;
        }
        if (next.value !== summary.fileHash)
            throw new Error(changed(payroll, published));
    }
    finally {
        await rows.return('');
    }
    if (batch.length > 0)
        await flush();
    return published;
}
async function declare({ payroll, summary, progress, checkpoint, outlet }) {
    const { merchantId, batchId } = payroll.batch;
    const declared = {
        merchantId,
        batchId,
        rows: summary.payable.rows,
        amount: summary.payable.amount,
        refused: summary.refused.rows,
        fileHash: summary.fileHash,
        declaredAt: progress.declaredAt,
    };
    await outlet.publish([
        {
            topic: outlet.destination.topic,
            key: `${merchantId}:${batchId}`,
            value: outlet.encodeDeclared(declared),
            headers: cloudEvent('PayoutBatchDeclared', eventId(merchantId, batchId, 0), progress),
        },
    ]);
    await checkpoint.save(progress);
}
function requested(command, progress, outlet) {
    const { merchantId, payoutId } = command;
    return {
        topic: outlet.destination.topic,
        key: `${merchantId}:${payoutId}`,
        value: outlet.encodeRequested(command),
        headers: cloudEvent('PayoutRequested', eventId(merchantId, payoutId, 0), progress),
    };
}
/** CloudEvents in the binary mode of its Kafka binding. The same row always carries the same id. */
const cloudEvent = (type, id, { declaredAt }) => ({
    ce_specversion: '1.0',
    ce_id: id,
    ce_type: `in.payoutd.${type}`,
    ce_source: 'payoutd/ingest',
    ce_time: new Date(declaredAt).toISOString(),
});
const changed = ({ path }, published) => `${path} was changed while it was being published: ${published} rows of what was checked are out. ` +
    'Ingest the file as it is now; what is out is not paid twice.';
