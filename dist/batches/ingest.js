import { formatRupees } from "../payout/money.js";
import { checkPayroll } from "./check.js";
import { Checkpoint } from "./checkpoint.js";
import { ListFile } from "./list-file.js";
import { publishPayroll } from "./publish.js";
import { UnreadableFile } from "./records.js";
import { RefusedFile } from "./refused-file.js";
/**
 * Brings a payroll file in. The whole file is checked before anything of it is published; publishing can be
 * interrupted at any point, and the same request goes on. The same file for the same batch can be ingested
 * any number of times: its rows have the same payoutIds and are paid once. Throws when the file, Kafka or
 * the registry cannot be reached, or when the file changes meanwhile.
 */
export async function ingest(request, deps) {
    const read = await check(request, deps);
    if ('kind' in read)
        return read;
    const { summary, payable, refusedFile } = read;
    const checked = { summary, refusedFile };
    const differences = compare(request.expected, summary);
    if (differences.length > 0)
        return { kind: 'totals-differ', differences, ...checked };
    if (summary.refused.rows > 0 && !request.publishValidRows)
        return { kind: 'rows-refused', ...checked };
    if (summary.payable.rows === 0)
        return { kind: 'nothing-payable', ...checked };
    if (request.dryRun)
        return { kind: 'dry-run', ...checked };
    const outlet = await deps.openOutlet();
    try {
        return { ...(await publish(request, deps, outlet, summary, payable)), ...checked };
    }
    finally {
        await outlet.close();
    }
}
const PAYOUT_COLUMNS = ['row', 'reference', 'payoutId'];
async function check({ payroll }, { onBytes, signal }) {
    const refused = new RefusedFile(payroll.path);
    try {
        const { summary, payable } = await checkPayroll(payroll, {
            onRefused: refused.add,
            onBytes: (bytes) => {
                signal.throwIfAborted();
                onBytes(bytes);
            },
        });
        return { summary, payable, refusedFile: await refused.complete() };
    }
    catch (error) {
        await refused.discard();
        if (error instanceof UnreadableFile)
            return { kind: 'unreadable', faults: error.faults };
        if (signal.aborted)
            return { kind: 'stopped' };
        throw error;
    }
}
async function publish({ payroll }, { checkpointFolder, clock, signal, onPublished }, outlet, summary, payable) {
    const { rows, amount } = summary.payable;
    const identity = { ...outlet.destination, ...payroll.batch, fileHash: summary.fileHash };
    const checkpoint = new Checkpoint(checkpointFolder, identity);
    const before = await checkpoint.load(summary.payable);
    const progress = before ?? { declaredAt: clock.now(), rows, amount: String(amount), published: 0 };
    const payouts = await ListFile.open(`${payroll.path}.payouts.csv`, 'payouts', PAYOUT_COLUMNS);
    try {
        const published = await publishPayroll({
            payroll,
            summary,
            payable,
            progress,
            checkpoint,
            outlet,
            payouts,
            signal,
            onPublished: (done) => onPublished(done, rows),
        });
        if (published < rows)
            return { kind: 'interrupted', published };
        await payouts.complete();
    }
    finally {
        await payouts.discard();
    }
    return progress.published === rows
        ? { kind: 'published-before', checkpoint: checkpoint.path, payoutsFile: payouts.path }
        : { kind: 'published', resumedAfter: progress.published, payoutsFile: payouts.path };
}
function compare({ rows, amount }, { all, unreadableAmounts }) {
    const differences = [];
    if (rows !== null && rows !== all.rows)
        differences.push(`expected ${rows} rows, the file has ${all.rows}`);
    if (amount !== null && amount !== all.amount) {
        differences.push(`expected ${formatRupees(amount)} in all, the file adds up to ${formatRupees(all.amount)}${notAdded(unreadableAmounts)}`);
    }
    return differences;
}
/** A spreadsheet adds up what no payout can be: -5, or 12000.50. */
const notAdded = (amounts) => amounts === 0
    ? ''
    : `. The rows whose amount cannot be read, has paise or is negative (${amounts}) are not in this total, though a spreadsheet may count them`;
