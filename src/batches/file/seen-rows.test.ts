import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { command } from '../../domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../../domain/commands/command.ts'
import { paise } from '../../domain/money.ts'
import { RowSet } from './row-set.ts'
import { SeenRows } from './seen-rows.ts'

function newSeenRows(t: TestContext): SeenRows {
  const seen = new SeenRows()
  t.after(() => seen.close())
  return seen
}

test('a reference is new once; from then on it is known by its first row', (t) => {
  const seen = newSeenRows(t)
  assert.equal(seen.meet(command('a'), 2), null)
  assert.equal(seen.meet(command('b'), 3), null)
  assert.deepEqual(seen.meet(command('a'), 4), { row: 2, same: true })
  assert.deepEqual(seen.meet(command('a'), 5), { row: 2, same: true })
})

test('content is who gets how much: a remark may differ, but not an amount, an account or a name', (t) => {
  const seen = newSeenRows(t)
  seen.meet(command('a'), 2)
  const same = (changes: Partial<PayoutCommand>) => seen.meet(command('a', changes), 3)?.same
  assert.equal(same({ remark: 'again', phoneNumber: '9876543210', metadata: { x: 'y' } }), true)
  assert.equal(same({ amount: paise(50_100n) }), false)
  assert.equal(same({ accountNo: '50100123457' }), false)
  assert.equal(same({ accountName: 'Asha Roa' }), false)
  assert.equal(same({ ifsc: null, vpa: 'asha@upi' }), false)
})

test('a reference whose first row was refused is known, and no row counts as the same', (t) => {
  const seen = newSeenRows(t)
  seen.refuse(command('a').payoutId, 2)
  assert.deepEqual(seen.meet(command('a'), 3), { row: 2, same: false })
})

test('among many rows none is lost or confused', (t) => {
  const seen = newSeenRows(t)
  const ids = Array.from({ length: 20_000 }, (_, i) => `id-${i}`)
  for (const [i, id] of ids.entries()) assert.equal(seen.meet(command(id), i + 2), null)
  for (const [i, id] of ids.entries()) assert.deepEqual(seen.meet(command(id), 1), { row: i + 2, same: true })
})

test('a set of rows contains exactly what was added', () => {
  const set = new RowSet()
  const rows = [2, 3, 9, 8_191, 8_192, 100_000]
  for (const row of rows) set.add(row)
  for (let row = 0; row < 110_000; row++) assert.equal(set.has(row), rows.includes(row))
})
