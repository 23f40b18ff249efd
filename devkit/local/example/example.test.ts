import assert from 'node:assert/strict'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkPayroll, type RefusedRow } from '../../../src/batches/file/check-file.ts'
import { exampleRows } from './example.ts'
import { writeExample } from './files.ts'
import { WRONG } from './planted.ts'

const COMMITTED = join(import.meta.dirname, '../../../examples/payroll-2026-11.csv')
const batch = { merchantId: 'acme', batchId: 'nov', limits: { minAmount: null, maxAmount: null } }

async function check(path: string) {
  const refused: RefusedRow[] = []
  const { summary } = await checkPayroll(
    { path, batch, referenceFrom: [] },
    { onRefused: async (row) => void refused.push(row), onBytes: () => undefined },
  )
  return { summary, refused }
}

const scratch = async () => join(await mkdtemp(join(tmpdir(), 'payroll-')), 'example.csv')

test('the committed example is what the generator produces', async () => {
  const path = await scratch()
  await writeExample(path, 1000, 202611)
  for (const suffix of ['.csv', '.expected.csv']) {
    const [made, committed] = await Promise.all(
      [path, COMMITTED].map((name) => readFile(name.replace('.csv', suffix), 'utf8')),
    )
    assert.equal(made, committed)
  }
})

test('every row of the example has the planted result, for the planted reason', async () => {
  const { summary, refused } = await check(COMMITTED)
  const rows = [...exampleRows(1000, 202611)]
  const planted = rows.filter(({ expected }) => expected?.outcome === 'rejected')
  assert.deepEqual(
    refused.map(({ row, faults }) => ({
      row,
      faults: faults.map(({ column, rule }) => `${column}: ${rule}`),
    })),
    planted.map(({ row, expected }) => ({ row, faults: [`${expected?.column}: ${expected?.rule}`] })),
  )
  assert.equal(summary.all.rows, 1000)
  assert.equal(summary.repeated.rows, rows.filter(({ expected }) => expected?.outcome === 'duplicate').length)
  assert.equal(summary.all.rows, summary.payable.rows + summary.refused.rows + summary.repeated.rows)
})

test('every thousand rows of a larger file contain every planted fault', () => {
  const rows = [...exampleRows(3000, 7)]
  for (const { expected } of WRONG) {
    const found = rows.filter((row) => row.expected === expected)
    assert.equal(found.length, 3, expected.why)
  }
})

test('a larger file of the same make-up has the expected results too', async () => {
  const path = await scratch()
  const makeup = await writeExample(path, 5_300, 7)
  const { summary } = await check(path)
  assert.equal(summary.refused.rows, makeup.rejected)
  assert.equal(summary.repeated.rows, makeup.duplicates)
  assert.equal(summary.all.rows, 5_300)
})
