import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { readRecords, UnreadableFile } from './csv-records.ts'

/** The bytes in chunks of `size`, so that chunk boundaries fall in every place. */
async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function recordsOf(content: string | Buffer, size = 7): Promise<string[][]> {
  const bytes = Buffer.from(content)
  const records: string[][] = []
  for await (const record of readRecords(chunks(bytes, size), createHash('sha256'))) records.push(record)
  return records
}

const fault = async (content: string | Buffer, size?: number): Promise<string> => {
  try {
    await recordsOf(content, size)
  } catch (error) {
    if (error instanceof UnreadableFile) return error.faults.join('\n')
    throw error
  }
  return ''
}

test('a file in the form that a spreadsheet saves is read: mark, CRLF, quotes, any script, wherever the chunks end', async () => {
  const content = '\ufeffa,b\r\n"x, ""y""",ஆஷா\r\n"two\r\nlines",ਕੌਰ'
  for (const size of [1, 2, 3, 7, 1000]) {
    assert.deepEqual(await recordsOf(content, size), [
      ['a', 'b'],
      ['x, "y"', 'ஆஷா'],
      ['two\r\nlines', 'ਕੌਰ'],
    ])
  }
})

test('an empty line is a record, so that rows count as in a spreadsheet', async () => {
  assert.deepEqual(await recordsOf('a\n\nb\n'), [['a'], [''], ['b']])
})

test('a file whose lines end in several ways has a record for each', async () => {
  assert.deepEqual(await recordsOf('a\r\nb\nc\rd\r\n'), [['a'], ['b'], ['c'], ['d']])
})

test('a record may have more or fewer cells than the others', async () => {
  assert.deepEqual(await recordsOf('a,b\n1\n1,2,3\n'), [['a', 'b'], ['1'], ['1', '2', '3']])
})

test('an unreadable file is refused with all its faults', () => {
  const { name, message, faults } = new UnreadableFile(['one', 'two'])
  assert.deepEqual([name, message, faults], ['UnreadableFile', 'one; two', ['one', 'two']])
})

test('a reader that stops early closes the file', async () => {
  const closed = Promise.withResolvers<void>()
  const endless = (async function* () {
    try {
      for (;;) yield Buffer.from('a,b\n')
    } finally {
      closed.resolve()
    }
  })()
  for await (const record of readRecords(endless, createHash('sha256'))) {
    assert.deepEqual(record, ['a', 'b'])
    break
  }
  await closed.promise
})

test('an error of the file itself is not taken for a fault of its text', async () => {
  const broken = (async function* () {
    yield Buffer.from('a,b\n')
    throw new Error('the disk is gone')
  })()
  const read = async () => {
    for await (const record of readRecords(broken, createHash('sha256'))) assert.ok(record)
  }
  await assert.rejects(read, { message: 'the disk is gone' })
})

test('every byte is hashed', async () => {
  const hash = createHash('sha256')
  const content = Buffer.from('\ufeffa,b\r\n1,2\r\n')
  for await (const record of readRecords(chunks(content, 3), hash)) assert.ok(record)
  assert.equal(hash.digest('hex'), createHash('sha256').update(content).digest('hex'))
})

test('a file that is not UTF-8 is refused, naming the line', async () => {
  const latin1 = Buffer.concat([Buffer.from('a,b\nमीरा,1\n'), Buffer.from('Jos\xe9,2\n', 'latin1')])
  for (const size of [7, 1_000]) assert.match(await fault(latin1, size), /^line 3 is not UTF-8/)
  assert.match(await fault(Buffer.concat([Buffer.from('\n'), latin1]), 1_000), /^line 4 is not UTF-8/)
  assert.match(await fault(Buffer.from('\ufeffa,b\n1,2\n', 'utf16le')), /not UTF-8/)
  assert.match(await fault(Buffer.from('a,b\nमीरा').subarray(0, -1)), /^line 2 is not UTF-8/)
})

test('the error for a spreadsheet workbook says how to save it', async () => {
  assert.equal(
    await fault('PK\u0003\u0004rest of a workbook'),
    'the file is a spreadsheet workbook: save it as "CSV UTF-8 (comma delimited)"',
  )
  assert.equal(await fault('a,b\nPK\u0003\u0004,1\n'), '')
  const old = Buffer.from('d0cf11e0a1b11ae1\n', 'hex')
  assert.match(await fault(old), /workbook of the old kind \(\.xls\).*CSV UTF-8/)
})

test('a PDF is recognised as one', async () => {
  assert.match(await fault('%PDF-1.7\n%âãÏÓ\n'), /^the file is a PDF: .*CSV UTF-8/)
})

test('a quote that is never closed is found, and does not fill the memory', async () => {
  assert.match(await fault('a,b\n1,2\n"3,4\n5,6\n'), /^row 3: a quote is opened and never closed/)
  assert.equal(
    await fault(`a,b\n"1,${'2\n'.repeat(100_000)}`),
    'row 2: it is longer than 65536 characters: is a quote never closed?',
  )
})

test('a quote inside a cell is refused, naming the row', async () => {
  assert.match(await fault('a,b\n1,5"6\n'), /^row 2: a cell contains a quote/)
  assert.match(await fault('a,b\n1,"5"6\n'), /^row 2: a cell contains a quote/)
})

test('the error for a file with another separator asks for commas, quoted or not, with a second line or without', async () => {
  const said = 'the cells are separated by semicolons: save the file as CSV with commas'
  assert.equal(await fault('reference;account_no\nEMP1;50100123\n'), said)
  assert.equal(await fault('"reference";"account_no"\n"EMP1";"50,100"\n'), said)
  assert.equal(await fault('reference;account_no'), said)
  assert.match(await fault('reference\taccount_no\nEMP1\t50100123\n'), /^the cells are separated by tabs: /)
  assert.match(await fault('reference|account_no'), /^the cells are separated by vertical bars: /)
  assert.equal(await fault('reference\nEMP1;1\n'), '')
  assert.equal(await fault('reference,a\nEMP1;1'), '')
  assert.equal(await fault('reference,a;b\nEMP1,x|y\n'), '')
})

test('a line without end is refused before it fills the memory', async () => {
  const endless = 'x'.repeat(40 * 64 * 1024)
  assert.equal(await fault(endless, 64 * 1024), 'line 1 does not end within 1048576 bytes')
  const longest = 'x'.repeat(1024 * 1024)
  assert.match(await fault(longest, longest.length), /^row 1: it is longer than 65536 characters/)
})
