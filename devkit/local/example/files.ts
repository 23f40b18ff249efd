import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { type ExampleRow, exampleRows } from './example.ts'
import { HEADER } from './rows.ts'

/** How many rows of each result a file has. */
export type Makeup = { rows: number; rejected: number; duplicates: number; failed: number }

/**
 * Writes an example payroll to `path`, as a spreadsheet saves CSV in UTF-8, and beside it `….expected.csv` with the
 * expected result of each planted row.
 */
export async function writeExample(path: string, rows: number, seed: number): Promise<Makeup> {
  const payroll = createWriteStream(path)
  const expected = createWriteStream(path.replace(/(\.csv)?$/, '.expected.csv'))
  const makeup: Makeup = { rows, rejected: 0, duplicates: 0, failed: 0 }
  payroll.write(`\ufeff${line(HEADER)}`)
  expected.write(`\ufeff${line(['row', 'reference', 'outcome', 'column', 'rule', 'why'])}`)
  for (const example of exampleRows(rows, seed)) {
    count(makeup, example)
    if (!payroll.write(line(example.cells))) await once(payroll, 'drain')
    if (!example.expected) continue
    const { outcome, column, rule, why } = example.expected
    expected.write(line([String(example.row), example.reference, outcome, column, rule, why]))
  }
  payroll.end()
  expected.end()
  await Promise.all([once(payroll, 'close'), once(expected, 'close')])
  return makeup
}

function count(makeup: Makeup, { expected }: ExampleRow): void {
  if (expected?.outcome === 'rejected') makeup.rejected++
  if (expected?.outcome === 'duplicate') makeup.duplicates++
  if (expected?.outcome === 'failed') makeup.failed++
}

const line = (cells: readonly string[]): string => `${cells.map(cell).join(',')}\r\n`
const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
