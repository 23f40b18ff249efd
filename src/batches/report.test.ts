import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paise } from '../domain/money.ts'
import type { Summary } from './file/check-file.ts'
import { report } from './report.ts'

const totals = (rows: number, rupees: bigint) => ({ rows, amount: paise(rupees * 100n) })
const summary: Summary = {
  lastLineEnds: true,
  fileHash: 'hash',
  all: totals(5, 150_000n),
  payable: totals(2, 100_000n),
  refused: totals(2, 0n),
  repeated: totals(1, 50_000n),
  unreadableAmounts: 2,
}
const doubts = { comparison: { kind: 'unknown', why: 'the ledger is down' }, mayBeCutOff: false } as const
const files = { refusedFile: 'nov.csv.refused.csv', payoutsFile: 'nov.csv.payouts.csv' }
const known = { comparison: doubts.comparison, cancelled: null, summary, ...files }

test('the report about a published file says where to find it, and that known payouts are not paid again', () => {
  const said = report({ kind: 'published', resumedAfter: 0, ...known })
  assert.match(said, /Published: 2 payouts\. payoutd does not pay again what it already knows of this batch/)
  assert.match(said, /payoutId of every row to be paid: nov\.csv\.payouts\.csv$/)
  assert.match(report({ kind: 'published-before', checkpoint: 'c', ...known }), /nov\.csv\.payouts\.csv$/)
})

test('amounts that are in no total are counted beside it', () => {
  const said = report({ kind: 'dry-run', ...doubts, summary, refusedFile: null })
  assert.match(
    said,
    /^refused +2 +₹0\.00 {2}without the amounts of 2: in a row with too many or too few cells, unreadable, with paise or negative$/m,
  )
  const all = report({
    kind: 'dry-run',
    ...doubts,
    summary: { ...summary, unreadableAmounts: 0 },
    refusedFile: null,
  })
  assert.match(all, /^refused +2 +₹0\.00$/m)
})

test('an ingest that is interrupted after its batch was cancelled is not to be continued', () => {
  const interrupted = { kind: 'interrupted', published: 1, summary, refusedFile: null } as const
  assert.match(report({ ...interrupted, cancelled: null }), /Run the same command again to continue\.$/)
  assert.match(
    report({ ...interrupted, cancelled: 'asha: the wrong file' }),
    /\n\nInterrupted: 1 of 2 payouts are published\. But the batch was cancelled \(asha: the wrong file\): payoutd cancels everything that now arrives for it, and never pays it\. Use another --batch\. payoutd payout list with this --batch shows what became of its payouts\.$/,
  )
})
