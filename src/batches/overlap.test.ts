import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { accepted, standAt, testLedger } from '../../test/ledger.ts'
import type { PayoutCommand } from '../domain/commands/command.ts'
import { cancelBatch } from '../operators/cancel-batch.ts'
import { type Database, sql } from '../platform/postgres/postgres.ts'
import { checkPayroll } from './file/check-file.ts'
import { compareWithBatch, isDoubtful, type Overlap } from './overlap.ts'
import { type Payroll, readPayroll } from './payroll.ts'
import { comparisonLines } from './report.ts'

const row = (reference: string, amount: number, account = '5010012345678') =>
  `${reference},Asha Rao,${account},HDFC0001234,${amount}`

const ends = sql<{ payoutId: string; state: string }>`
  update payouts set state = ${'state'}, due_at = null where payout_id = ${'payoutId'}`

/** A ledger, and files of its batch `nov`. */
async function world(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  const folder = await mkdtemp(join(tmpdir(), 'overlap-'))
  const limits = { minAmount: null, maxAmount: null }
  let files = 0
  const file = async (rows: string[]): Promise<Payroll> => {
    const path = join(folder, `${files++}.csv`)
    await writeFile(path, ['reference,account_name,account_no,ifsc,amount', ...rows, ''].join('\n'))
    return { path, batch: { merchantId: 'acme', batchId: 'nov', limits }, referenceFrom: [] }
  }
  return {
    ledger,
    async takeIn(rows: string[]): Promise<PayoutCommand[]> {
      const commands: PayoutCommand[] = []
      for await (const each of readPayroll(await file(rows), () => undefined))
        if (each.kind === 'payable') commands.push(each.command)
      await accepted(ledger, config, commands)
      return commands
    },
    /** `meanwhile` happens while the file is read. */
    async compare(
      rows: string[],
      partitions: { high: bigint } | null = null,
      meanwhile: () => Promise<unknown> = async () => undefined,
      published = 0,
    ): Promise<Overlap> {
      const payroll = await file(rows)
      const { summary, payable } = await checkPayroll(payroll, {
        onRefused: async () => undefined,
        onBytes: () => undefined,
      })
      const { topics, db } = ledger
      const end = partitions && { ...{ partition: 0, id: null, low: 0n }, ...partitions }
      let seconds = 0
      return compareWithBatch(
        {
          ...{ payroll, payable, totals: summary.payable, published },
          ends: end && { topic: topics.commands, partitions: [end] },
        },
        {
          db: beforeRows(db, meanwhile),
          ...{ fingerprintKey: config.fingerprintKey, signal: new AbortController().signal },
          clock: { now: () => 0, monotonic: () => 4_000 * seconds++ },
        },
      )
    },
  }
}

/** A database that does this before it is asked about rows of a file. */
const beforeRows = (db: Database, meanwhile: () => Promise<unknown>): Database => ({
  ...db,
  run: async (statement, values) => {
    if (Object.hasOwn(values as object, 'named')) await meanwhile()
    return db.run(statement, values)
  },
})

const inWords = ({ kind: _, behind, cancelled: __, lacked: ___, unpaid: ____, ...totals }: Overlap) => ({
  ...Object.fromEntries(
    Object.entries(totals).map(([name, { rows, amount }]) => [name, `${rows} of ₹${amount / 100n}`]),
  ),
  behind,
})

test('the comparison of a file with its batch is by who gets how much under which reference', async (t) => {
  const { takeIn, compare } = await world(t)
  const first = [row('E1', 100), row('E2', 200), row('E3', 400), row('E4', 800)]
  const none = '0 of ₹0'
  assert.deepEqual(inWords(await compare(first)), {
    ...{ batch: none, missing: none, same: none, changed: none, fresh: '4 of ₹1500', behind: 0n },
  })
  await takeIn(first)
  assert.deepEqual(inWords(await compare(first)), {
    ...{ batch: '4 of ₹1500', missing: none, same: '4 of ₹1500', changed: none, fresh: none, behind: 0n },
  })
  const second = [row('E1', 100), row('E2', 201), row('E3', 400, '5010012345679'), row('000004', 800)]
  assert.deepEqual(inWords(await compare(second)), {
    ...{ batch: '4 of ₹1500', missing: '1 of ₹800', same: '1 of ₹100', changed: '2 of ₹601' },
    ...{ fresh: '1 of ₹800', behind: 0n },
  })
})

test('rows that the ledger has and that ended unpaid are counted beside, whatever the file says of them now', async (t) => {
  const { takeIn, compare, ledger } = await world(t)
  const taken = await takeIn([row('E1', 100), row('E2', 200), row('E3', 400)])
  for (const [i, state] of (['cancelled', 'failed'] as const).entries())
    await ledger.db.run(ends, { payoutId: taken[i]?.payoutId ?? '', state })
  const found = await compare([row('E1', 100), row('E2', 201), row('E3', 400)])
  assert.deepEqual([found.same.rows, found.changed.rows], [2, 1])
  assert.deepEqual(found.unpaid, { rows: 2, amount: 30_100n })
})

test('what ends or is taken in while the file is compared is neither missing nor hides what is', async (t) => {
  const { takeIn, compare, ledger } = await world(t)
  const [first] = await takeIn([row('E1', 100), row('E2', 200)])
  const failing = () => ledger.db.run(ends, { payoutId: first?.payoutId ?? '', state: 'failed' })
  const whole = await compare([row('E1', 100), row('E2', 200), row('E3', 400)], null, failing)
  assert.deepEqual([whole.missing, isDoubtful(whole)], [{ rows: 0, amount: 0n }, false])

  await takeIn([row('E9', 900, '5010012347777')])
  const arriving = () => takeIn([row('E3', 400)])
  const lacking = await compare([row('E2', 200), row('E3', 400), row('E4', 800)], null, arriving)
  assert.deepEqual([lacking.missing, isDoubtful(lacking)], [{ rows: 1, amount: 90_000n }, true])
})

test('a payout that ended unpaid is not missing', async (t) => {
  const { ledger, takeIn, compare } = await world(t)
  const [, second] = await takeIn([row('E1', 100), row('E2', 200)])
  await ledger.db.run(ends, { payoutId: second?.payoutId ?? '', state: 'failed' })
  const { batch, missing, fresh } = await compare([row('E1', 100), row('E2-2', 200)])
  assert.deepEqual([batch.rows, missing.rows, fresh.rows], [1, 0, 1])
})

test('the ingest waits for commands on their way, and reports those that intake has not stored within ten seconds', async (t) => {
  const { ledger, compare } = await world(t)
  await standAt(ledger, 0, { offset: 3n, logId: null })
  assert.equal((await compare([row('E1', 100)], { high: 3n })).behind, 0n)
  assert.equal((await compare([row('E1', 100)], { high: 5n })).behind, 2n)
})

test('of the rows that an earlier run published, those that were not accepted are lacking, whatever was accepted of the others', async (t) => {
  const { takeIn, compare } = await world(t)
  const rows = [row('E1', 100), row('E2', 200), row('E3', 400), row('E4', 800)]
  const lacked = async (published: number) => (await compare(rows, null, undefined, published)).lacked
  assert.deepEqual([await lacked(0), await lacked(3)], [0, 3])
  await takeIn([row('E2', 201), row('E3', 400), row('E4', 800)])
  assert.deepEqual([await lacked(0), await lacked(1), await lacked(3), await lacked(4)], [0, 1, 1, 1])
})

test('nothing is paid of a batch that a person cancelled, and the ingest says so before it publishes anything', async (t) => {
  const { ledger, compare } = await world(t)
  const rows = [row('1', 100)]
  assert.equal(isDoubtful(await compare(rows)), false)
  await cancelBatch({ merchantId: 'acme', batchId: 'nov', by: 'asha', reason: 'the wrong file' }, ledger)
  const comparison = await compare(rows)
  assert.equal(comparison.cancelled, 'asha: the wrong file (the batch)')
  assert.equal(isDoubtful(comparison), true)
  assert.deepEqual(comparisonLines(comparison), [
    '- the batch was cancelled (asha: the wrong file (the batch)): payoutd cancels everything that now arrives for it, and never pays it. Use another --batch',
  ])
})
