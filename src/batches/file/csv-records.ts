import { isUtf8 } from 'node:buffer'
import type { Hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'

/** Why a file as a whole cannot be read, in sentences. The ingest must publish nothing of it. */
export class UnreadableFile extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('; '))
    this.name = 'UnreadableFile'
    this.faults = faults
  }
}

const MAX_RECORD = 64 * 1024
const MAX_LINE = 1024 * 1024
const NEW_LINE = 0x0a
/** One file may have several, if it was put together from others. */
const LINE_ENDS = ['\r\n', '\n', '\r']
const SAVE_AS = 'save it as "CSV UTF-8 (comma delimited)"'
/** Formats that people often send instead of CSV, by their first bytes. */
const OTHER_FORMATS: readonly { begins: Buffer; fault: string }[] = [
  { begins: Buffer.from('PK\u0003\u0004'), fault: `the file is a spreadsheet workbook: ${SAVE_AS}` },
  {
    begins: Buffer.from('d0cf11e0', 'hex'),
    fault: `the file is a spreadsheet workbook of the old kind (.xls): ${SAVE_AS}`,
  },
  {
    begins: Buffer.from('%PDF'),
    fault: `the file is a PDF: take the spreadsheet that it was made from, and ${SAVE_AS}`,
  },
]
const WITH_COMMAS = 'save the file as CSV with commas'
const OTHER_SEPARATORS = [
  { character: ';', name: 'semicolons' },
  { character: '\t', name: 'tabs' },
  { character: '|', name: 'vertical bars' },
]

/**
 * Streams the records of a CSV file: cells as text with quotes removed, an empty line as one empty cell. Feeds every byte to
 * `hash`. Throws UnreadableFile, with the place, for anything that is not UTF-8 or not CSV; record n is row n in a spreadsheet.
 */
export async function* readRecords(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<string[]> {
  const parser = parse({
    record_delimiter: LINE_ENDS,
    relax_column_count: true,
    max_record_size: MAX_RECORD,
    bom: true,
  })
  const source = Readable.from(utf8Lines(bytes, hash))
  source.on('error', (error) => parser.destroy(error))
  try {
    yield* source.pipe(parser) as AsyncIterable<string[]>
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new UnreadableFile([`row ${parser.info.records + 1}: ${plain(error.code)}`])
  } finally {
    source.destroy()
  }
}

/** Whole lines, checked to be UTF-8: the parser would silently put replacement characters into names. */
async function* utf8Lines(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  let line = 1
  for await (const chunk of bytes) {
    hash.update(chunk)
    const read = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    if (line === 1) requireText(read)
    const end = read.lastIndexOf(NEW_LINE) + 1
    const lines = read.subarray(0, end)
    rest = read.subarray(end)
    if (rest.length > MAX_LINE)
      throw new UnreadableFile([`line ${line} does not end within ${MAX_LINE} bytes`])
    if (lines.length === 0) continue
    if (line === 1) requireCommas(lines.subarray(0, lines.indexOf(NEW_LINE)))
    line += requireUtf8(lines, line)
    yield lines
  }
  if (rest.length > 0) {
    if (line === 1) requireCommas(rest)
    requireUtf8(rest, line)
    yield rest
  }
}

function requireText(beginning: Buffer): void {
  const other = OTHER_FORMATS.find(({ begins }) => beginning.subarray(0, begins.length).equals(begins))
  if (other) throw new UnreadableFile([other.fault])
}

/** Without this check the parser takes the whole line for one cell, and stumbles over quotes. */
function requireCommas(firstLine: Buffer): void {
  if (firstLine.includes(',')) return
  const other = OTHER_SEPARATORS.find(({ character }) => firstLine.includes(character))
  if (other) throw new UnreadableFile([`the cells are separated by ${other.name}: ${WITH_COMMAS}`])
}

/** Returns the number of lines. */
function requireUtf8(lines: Buffer, firstLine: number): number {
  const fits = isUtf8(lines)
  let count = 0
  for (let from = 0; from < lines.length; count++) {
    const end = lines.indexOf(NEW_LINE, from)
    const next = end < 0 ? lines.length : end + 1
    if (!fits && !isUtf8(lines.subarray(from, next))) {
      throw new UnreadableFile([`line ${firstLine + count} is not UTF-8: ${SAVE_AS}`])
    }
    from = next
  }
  return count
}

function plain(code: string): string {
  switch (code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'a quote is opened and never closed'
    case 'CSV_MAX_RECORD_SIZE':
      return `it is longer than ${MAX_RECORD} characters: is a quote never closed?`
    case 'INVALID_OPENING_QUOTE':
    case 'CSV_INVALID_CLOSING_QUOTE':
      return 'a cell contains a quote: put quotes around the whole cell and double the quotes inside'
    default:
      return 'this is no CSV'
  }
}
