import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { UnreadableFile } from '../../batches/file/csv-records.ts'
import { readStatement } from './statement.ts'

function read(t: TestContext, text: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'statement-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'statement.csv')
  writeFileSync(file, text)
  return readStatement(file)
}

test('columns stand in any order, other columns are ignored, and amounts may have paise and commas', async (t) => {
  const text =
    'Date,"Amount",narration,UTR,order_no\r\n2026-11-20,"1,00,000.50","salary, ""Nov""",UTR1,\r\n\r\n,500,,,P2\r\n,₹7.5,,U 3,P3\r\n'
  assert.deepEqual(await read(t, text), [
    { row: 2, utr: 'UTR1', amount: 10_000_050n, mchOrderNo: null },
    { row: 4, utr: null, amount: 50_000n, mchOrderNo: 'P2' },
    { row: 5, utr: 'U 3', amount: 750n, mchOrderNo: 'P3' },
  ])
})

test('a statement with an unreadable row is refused, and the error names every such row', async (t) => {
  await assert.rejects(read(t, 'utr,amount\nU1,12.345\n,5\nU3,\nU4,1,00,000.00\nU5,7,\n'), (error) => {
    assert.ok(error instanceof UnreadableFile)
    assert.deepEqual(error.faults, [
      'row 2: amount must be rupees, such as 50000, 50,000 or ₹50,000.00',
      'row 3: it has neither utr nor order_no',
      'row 4: amount must be given',
      'row 5: it has more cells than the header: put quotes around a cell that contains a comma, such as "1,00,000.00"',
    ])
    return true
  })
})

test('a point behind Rs belongs to it; an amount that begins with a point is refused with what to write', async (t) => {
  const text = 'utr,amount\nU1,Rs.50\nU2,Rs.50.5\nU3,0.50\nU4,500.50/-\n'
  const amounts = (await read(t, text)).map(({ amount }) => amount)
  assert.deepEqual(amounts, [5_000n, 5_050n, 50n, 50_050n])
  for (const amount of ['.50', '₹.50', 'INR .5', 'Rs..50'])
    await assert.rejects(
      read(t, `utr,amount\nU1,${amount}\n`),
      /row 2: amount must have rupees before the point: 50 or 0\.50/,
    )
})

test('paise behind paise, or behind the end of an amount, are no amount', async (t) => {
  for (const amount of ['500.00.50', '500/-.50'])
    await assert.rejects(read(t, `utr,amount\nU1,${amount}\n`), /amount must be rupees/)
})

test('an amount that an unquoted comma splits in two is refused, even if the row is no longer for it', async (t) => {
  const text = 'utr,amount,remark,date\nU1,50,000\nU2,1,50,000.00\nU3,₹50,000,\nU4,50.00,000\nU5,50,1000\n'
  await assert.rejects(read(t, text), (error) => {
    assert.ok(error instanceof UnreadableFile)
    assert.deepEqual(
      error.faults.map((fault) => fault.replace(/: the next cell looks like .*/, '')),
      ['row 2: amount 50', 'row 3: amount 1', 'row 4: amount ₹50'],
    )
    return true
  })
})

test('a statement that has a column twice is refused', async (t) => {
  await assert.rejects(read(t, 'utr,amount,Amount\nU1,500,50000\n'), /the column "amount" appears twice/)
})

test('a statement that lacks columns is refused, and the error names them', async (t) => {
  await assert.rejects(read(t, 'date,paid\n'), /no column "utr"; the statement has no column "amount"/)
})
