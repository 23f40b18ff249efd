import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readRecords, UnreadableFile } from '../../batches/file/csv-records.ts'
import { isSplitAmount, SPLIT_AMOUNT } from '../../batches/file/split-amount.ts'
import { rupeesAndPaise } from '../../domain/rupees.ts'
import type { StatementLine } from './compare-statement.ts'

const COLUMNS = ['utr', 'amount', 'order_no'] as const
type StatementColumns = Record<(typeof COLUMNS)[number], number>

const FAULTS_TOLD = 10
const SHIFTED =
  'it has more cells than the header: put quotes around a cell that contains a comma, such as "1,00,000.00"'

/**
 * Reads the lines of a statement: CSV in UTF-8 whose header names the columns `utr` and `amount` (rupees, with or without paise),
 * and optionally `order_no`; it ignores others. Throws UnreadableFile with the fault of each row: half a statement cannot be
 * compared.
 */
export async function readStatement(path: string): Promise<StatementLine[]> {
  const records = readRecords(createReadStream(path), createHash('sha256'))
  const header = await records.next()
  if (header.done) throw new UnreadableFile(['the statement is empty'])
  const at = columnsOf(header.value)
  const lines: StatementLine[] = []
  const faults: string[] = []
  let row = 1
  for await (const cells of records) {
    row++
    if (cells.every((cell) => cell.trim() === '')) continue
    const isShifted = cells.slice(header.value.length).some((cell) => cell.trim() !== '')
    const line = isShifted ? { fault: SHIFTED } : readLine(cells, row, at)
    if ('fault' in line) faults.push(`row ${row}: ${line.fault}`)
    else lines.push(line)
  }
  if (faults.length === 0) return lines
  const more = faults.length > FAULTS_TOLD ? [`and ${faults.length - FAULTS_TOLD} rows more`] : []
  throw new UnreadableFile([...faults.slice(0, FAULTS_TOLD), ...more])
}

function columnsOf(header: readonly string[]): StatementColumns {
  const names = header.map((name) => name.trim().toLowerCase())
  const missing = ['utr', 'amount'].filter((name) => !names.includes(name))
  if (missing.length > 0) {
    throw new UnreadableFile(missing.map((name) => `the statement has no column "${name}"`))
  }
  const twice = COLUMNS.filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice.length > 0) throw new UnreadableFile(twice.map((name) => `the column "${name}" appears twice`))
  return Object.fromEntries(COLUMNS.map((name) => [name, names.indexOf(name)])) as StatementColumns
}

function readLine(
  cells: readonly string[],
  row: number,
  at: StatementColumns,
): StatementLine | { fault: string } {
  const cell = (name: keyof StatementColumns): string | null => cells[at[name]]?.trim() || null
  const utr = cell('utr')
  const mchOrderNo = cell('order_no')
  const amount = rupeesAndPaise(cell('amount') ?? '')
  if (amount.kind === 'unreadable') return { fault: `amount ${amount.message}` }
  if (isSplitAmount(cells, at.amount)) return { fault: `amount ${cell('amount')}: ${SPLIT_AMOUNT}` }
  if (utr === null && mchOrderNo === null) return { fault: 'it has neither utr nor order_no' }
  return { row, utr, amount: amount.amount, mchOrderNo }
}
