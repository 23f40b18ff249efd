import { paise, ZERO } from "../payout/money.js";
import { readPayroll } from "./payroll.js";
import { RowSet } from "./row-set.js";
import { SeenRows } from "./seen-rows.js";
/**
 * Reads the whole file once: what would be paid, what is refused and why, what stands twice. Every refused
 * row is handed to `onRefused`. Throws UnreadableFile when the file as a whole cannot be read.
 */
export async function checkPayroll(payroll, { onRefused, onBytes }) {
    const seen = new SeenRows();
    const payable = new RowSet();
    const totals = { payable: new Tally(), refused: new Tally(), repeated: new Tally() };
    let unreadableAmounts = 0;
    const rows = readPayroll(payroll, onBytes);
    try {
        let next = await rows.next();
        for (; !next.done; next = await rows.next()) {
            const row = judge(next.value, seen);
            switch (row.kind) {
                case 'payable':
                    payable.add(row.row);
                    totals.payable.add(row.command.amount);
                    break;
                case 'repeated':
                    totals.repeated.add(row.amount);
                    break;
                case 'refused':
                    if (row.amount === null)
                        unreadableAmounts++;
                    totals.refused.add(row.amount);
                    await onRefused(row);
            }
        }
        const all = new Tally();
        for (const tally of Object.values(totals))
            all.include(tally);
        return { summary: { fileHash: next.value, all, ...totals, unreadableAmounts }, payable };
    }
    finally {
        await rows.return('');
        seen.close();
    }
}
/** The second row of a reference pays nothing; if it says something else than the first, it is a mistake. */
function judge(row, seen) {
    if (row.kind === 'refused')
        return row;
    const { command, reference } = row;
    const before = seen.meet(command, row.row);
    if (before === null)
        return row;
    if (before.same)
        return { kind: 'repeated', amount: command.amount };
    const fault = {
        column: 'reference',
        rule: 'reference-reused',
        message: `row ${before.row} has the same reference and pays somebody or something else`,
        found: reference,
    };
    return { kind: 'refused', row: row.row, reference, amount: command.amount, faults: [fault] };
}
class Tally {
    rows = 0;
    amount = ZERO;
    add(amount) {
        this.rows++;
        this.amount = paise(this.amount + (amount ?? 0n));
    }
    include({ rows, amount }) {
        this.rows += rows;
        this.amount = paise(this.amount + amount);
    }
}
