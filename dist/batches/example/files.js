import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { exampleRows } from "./example.js";
import { HEADER } from "./rows.js";
/**
 * Writes an example payroll to `path`, as a spreadsheet saves CSV in UTF-8, and beside it
 * `….expected.csv`: for each planted row what must become of it.
 */
export async function writeExample(path, rows, seed) {
    const payroll = createWriteStream(path);
    const expected = createWriteStream(path.replace(/(\.csv)?$/, '.expected.csv'));
    const makeup = { rows, rejected: 0, duplicates: 0, failed: 0 };
    payroll.write(`\ufeff${line(HEADER)}`);
    expected.write(`\ufeff${line(['row', 'reference', 'outcome', 'column', 'rule', 'why'])}`);
    for (const example of exampleRows(rows, seed)) {
        count(makeup, example);
        if (!payroll.write(line(example.cells)))
            await once(payroll, 'drain');
        if (!example.expected)
            continue;
        const { outcome, column, rule, why } = example.expected;
        expected.write(line([String(example.row), example.reference, outcome, column, rule, why]));
    }
    payroll.end();
    expected.end();
    await Promise.all([once(payroll, 'close'), once(expected, 'close')]);
    return makeup;
}
function count(makeup, { expected }) {
    if (expected?.outcome === 'rejected')
        makeup.rejected++;
    if (expected?.outcome === 'duplicate')
        makeup.duplicates++;
    if (expected?.outcome === 'failed')
        makeup.failed++;
}
const line = (cells) => `${cells.map(cell).join(',')}\r\n`;
const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
