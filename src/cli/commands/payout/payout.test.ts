import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../../../test/ledger.ts'
import { openLedger } from '../../../app/ledger.ts'
import { readConfig } from '../../../config/config.ts'
import { command } from '../../../domain/commands/command.fixture.ts'
import { orderNumber, payoutIdFor } from '../../../domain/identifiers.ts'
import { become } from '../../../domain/payout/transition.ts'
import { accept, decided, submit } from '../../../operators/operations.fixture.ts'
import { silentLogger } from '../../../platform/log.ts'
import { connectDatabase, sql } from '../../../platform/postgres/postgres.ts'
import { Lifecycle } from '../../../platform/running/lifecycle.ts'
import { payoutd } from '../../cli.fixture.ts'
import { withLedger } from '../../with-ledger.ts'

/** An environment whose ledger holds the payout `p-1`, queued. */
async function withPayout(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const env = testEnvironment(await freshDatabase(t))
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger } = await openLedger(config, lifecycle)
  await accepted(ledger, config, [command('p-1')])
  await lifecycle.stop()
  return env
}

test('a payout is shown to people, and to programs as JSON', async (t) => {
  const env = await withPayout(t)
  const text = await payoutd(['payout', 'show', 'p-1'], env)
  assert.equal(text.code, 0)
  assert.match(text.stdout, /^payout p-1 of acme\n +requested +₹50,000.00 to account ••••6789/)
  const { stdout } = await payoutd(['payout', 'show', 'p-1', '--json'], env)
  const { payout, beneficiary } = JSON.parse(stdout)
  assert.deepEqual([payout.state, payout.amount, beneficiary.account], ['queued', '5000000', '••••6789'])
})

test('the error about an unknown id is one line, and the exit code is 1', async (t) => {
  const { code, stdout, stderr } = await payoutd(['payout', 'show', 'p-9'], await withPayout(t))
  assert.deepEqual([code, stdout], [1, ''])
  assert.equal(
    stderr,
    'merchant acme has no payout with the payoutId, order number, agentpayOrderId or batch/reference p-9: ' +
      'payoutd dlq list shows commands that payoutd could not accept\n',
  )
})

test('a cancellation shows what it would do, then what it did, and finally that it is too late', async (t) => {
  const env = await withPayout(t)
  const cancel = ['payout', 'cancel', 'p-1', '--by', 'asha', '--reason', 'wrong person']
  const dry = await payoutd([...cancel, '--dry-run'], env)
  assert.match(
    dry.stdout,
    /^payout p-1 would be cancelled: it was queued, and payoutd never sent it; nothing was done/,
  )
  const done = await payoutd([...cancel, '--yes'], env)
  assert.deepEqual(
    [done.code, done.stdout],
    [0, 'payout p-1 is cancelled: it was queued, and payoutd never sent it\n'],
  )
  const late = await payoutd([...cancel, '--yes'], env)
  assert.deepEqual([late.code, late.stdout], [1, 'payout p-1 stays cancelled: it has already ended\n'])
})

test('a request to cancel a payout under way is kept, though it stops nothing', async (t) => {
  const env = await withPayout(t)
  await withLedger(readConfig(env), (ledger) => decided(ledger, 'p-1', submit))
  const cancel = ['payout', 'cancel', 'p-1', '--by', 'asha', '--reason', 'wrong person']
  const { code, stdout } = await payoutd([...cancel, '--yes'], env)
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^payout p-1 stays submitting: .* the cancel request is recorded, so that payoutd does not send it again$/m,
  )
  const shown = await payoutd(['payout', 'show', 'p-1'], env)
  assert.match(shown.stdout, /to be cancelled +asha: wrong person$/m)
})

test('cancelling a batch cancels all its payouts that have not ended; several can be named by their ids', async (t) => {
  const env = await withPayout(t)
  const config = readConfig(env)
  const more = ['a-1', 'a-2', 'b-1', 'b-2'].map((id) => command(id, { batchId: `wrong-${id[0]}` }))
  await withLedger(config, (ledger) => accepted(ledger, config, more))
  const cancel = (...which: string[]) =>
    payoutd(['payout', 'cancel', ...which, '--by', 'asha', '--reason', 'wrong file', '--yes'], env)
  assert.equal((await cancel('a-1')).code, 0)
  const rest = await cancel('--batch', 'wrong-a')
  const later =
    'the ledger has 2 payouts of batch wrong-a, and 1 of them had already ended; no file declared its totals. ' +
    'Other payouts of the batch that arrive within 118 days are cancelled as well; ' +
    'while the merchant is fenced, its recovery does so\n'
  assert.deepEqual(
    [rest.code, rest.stdout],
    [0, `payout a-2 is cancelled: it was queued, and payoutd never sent it\n${later}`],
  )
  const again = await cancel('--batch', 'wrong-a')
  assert.deepEqual([again.code, again.stdout], [0, later.replace('1 of them', '2 of them')])
  assert.equal((await cancel('b-1', 'b-2')).stdout.match(/is cancelled/g)?.length, 2)
  await withLedger(config, (ledger) => accepted(ledger, config, [command('a-3', { batchId: 'wrong-a' })]))
  const { stdout } = await payoutd(['payout', 'list', '--json'], env)
  assert.deepEqual(stdout.match(/"payoutId":"[^"]+"/g), ['"payoutId":"p-1"'])
})

test('a batch of which a payout is paid is not reported as cancelled, and it says how many are', async (t) => {
  const env = await withPayout(t)
  const config = readConfig(env)
  const rows = ['p-2', 'p-3'].map((id) => command(id, { batchId: 'wrong' }))
  await withLedger(config, async (ledger) => {
    await accepted(ledger, config, rows)
    await decided(ledger, 'p-2', submit)
    await decided(ledger, 'p-2', accept)
    await decided(ledger, 'p-2', (before) => ({
      change: { before, after: become(before, 'paid', { utr: 'U2' }), source: 'CALLBACK', exchange: {} },
    }))
  })
  const { code, stdout } = await payoutd(
    ['payout', 'cancel', '--batch', 'wrong', '--by', 'asha', '--reason', 'wrong file', '--yes'],
    env,
  )
  assert.equal(code, 1)
  assert.match(
    stdout,
    /p-3 is cancelled.*\nthe ledger has 2 payouts of batch wrong, and 1 of them had already ended, 1 of these as paid;/,
  )
})

test('an unknown payout is not reported as cancelled, but is cancelled if it arrives', async (t) => {
  const env = await withPayout(t)
  const config = readConfig(env)
  const cancel = (...more: string[]) =>
    payoutd(['payout', 'cancel', 'later', '--by', 'asha', '--reason', 'wrong person', ...more], env)
  const said = (be: string) =>
    `payout later is not in the ledger, and nothing ${be} cancelled now: the request ${be} remembered for 118 days and ` +
    'cancels what arrives under this payoutId; while the merchant is fenced, its recovery does so. ' +
    'If you expected it here, compare the id with payoutd payout list'
  const dry = await cancel('--dry-run')
  assert.deepEqual([dry.code, dry.stdout], [0, `${said('would be')}; nothing was done\n`])
  const { code, stdout } = await cancel('--yes')
  assert.deepEqual([code, stdout], [1, `${said('is')}\n`])
  await withLedger(config, (ledger) => accepted(ledger, config, [command('later')]))
  assert.match((await payoutd(['payout', 'show', 'later'], env)).stdout, /state +cancelled/)
})

test('an unknown batch is not reported as cancelled', async (t) => {
  const env = await withPayout(t)
  const { code, stdout } = await payoutd(
    ['payout', 'cancel', '--batch', 'novmber', '--by', 'asha', '--reason', 'wrong file', '--yes'],
    env,
  )
  assert.match(stdout, /^the ledger has 0 payouts of batch novmber, .*; no file declared its totals\./)
  assert.equal(code, 1)
})

test('an order number is never taken for the payoutId of a payout that may arrive', async (t) => {
  const env = await withPayout(t)
  const cancel = (orderNo: string) =>
    payoutd(['payout', 'cancel', orderNo, '--by', 'asha', '--reason', 'wrong person', '--yes'], env)
  const other = await cancel(orderNumber('acme', 'p-9', 1))
  assert.match(other.stderr, /^merchant acme has no payout with the payoutId, order number, /)
  assert.equal(other.code, 1)
  const known = await cancel(orderNumber('acme', 'p-1', 1))
  assert.deepEqual(
    [known.code, known.stdout],
    [0, 'payout p-1 is cancelled: it was queued, and payoutd never sent it\n'],
  )
})

test('a batch can be cancelled though all that its files declare has ended, for what another file brings', async (t) => {
  const env = await withPayout(t)
  const config = readConfig(env)
  const cancel = (...which: string[]) =>
    payoutd(['payout', 'cancel', ...which, '--by', 'asha', '--reason', 'wrong file', '--yes'], env)
  const of = (id: string) => command(id, { batchId: 'nov' })
  await withLedger(config, (ledger) => accepted(ledger, config, [of('a-1')]))
  await withLedger(config, (ledger) => ledger.db.run(declareOne, { fileHash: 'f' }))
  await cancel('a-1')
  const { code, stdout } = await cancel('--batch', 'nov')
  assert.match(
    stdout,
    /its files declare 1\. Other payouts of the batch that arrive within 118 days are cancelled as well/,
  )
  assert.equal(code, 0)
  await withLedger(config, (ledger) => accepted(ledger, config, [of('a-2')]))
  assert.match((await payoutd(['payout', 'show', 'a-2'], env)).stdout, /state +cancelled/)
  await withLedger(config, (ledger) => ledger.db.run(declareOne, { fileHash: 'corrected' }))
  assert.match(
    (await cancel('--batch', 'nov')).stdout,
    /its files declare 2 \(a row that is in several files, such as a corrected one, counts in each\)\. Other/,
  )
})

const declareOne = sql<{ fileHash: string }>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  values ('acme', 'nov', 1, 10000, 0, ${'fileHash'}, '2026-11-21T12:00:00Z')`

test('without a terminal nothing is cancelled without prior agreement', async (t) => {
  const env = await withPayout(t)
  const { code, stderr } = await payoutd(
    ['payout', 'cancel', 'p-1', '--by', 'asha', '--reason', 'wrong person'],
    env,
  )
  assert.deepEqual([code, stderr], [1, 'there is no terminal to ask on: give --yes\n'])
  assert.match((await payoutd(['payout', 'show', 'p-1'], env)).stdout, /state +queued/)
})

const declare = sql<object>`
  insert into batches (merchant_id, batch_id, rows, amount, refused, file_hash, declared_at)
  values ('acme', 'nov', 800, 400000000, 0, 'f', '2026-11-21T12:00:00Z'),
         ('acme', 'dec', 5, 5000, 0, 'g', '2026-11-21T12:00:00Z')`

test('payouts are listed by batch and state, and one is found by its reference', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const config = readConfig(env)
  const lifecycle = new Lifecycle(silentLogger)
  await registered(config)
  const { ledger } = await openLedger(config, lifecycle)
  const fromFile = command(payoutIdFor('acme', 'nov', 'EMP 7/b'), { batchId: 'nov', rowNumber: 8 })
  await accepted(ledger, config, [command('p-1'), fromFile, command('p-2', { batchId: 'nov' })])
  await lifecycle.stop()
  const listed = async (...options: string[]) => {
    const { stdout } = await payoutd(['payout', 'list', '--json', ...options], env)
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).payoutId]))
  }
  assert.deepEqual(await listed('--batch', 'nov'), [fromFile.payoutId, 'p-2'])
  assert.deepEqual(await listed(), ['p-1', fromFile.payoutId, 'p-2'])
  assert.deepEqual(await listed('--batch', 'nov', '--state', 'paid', 'failed'), [])
  const paid = await payoutd(['payout', 'list', '--batch', 'nov', '--state', 'paid'], env)
  assert.deepEqual([paid.code, paid.stdout], [0, 'none\n'])
  const nobody = await payoutd(['payout', 'list', '--batch', 'nobody'], env)
  assert.deepEqual([nobody.code, nobody.stdout], [1, ''])
  assert.match(nobody.stderr, /^merchant acme has no payout of batch nobody: payoutd dlq list /)
  const { stdout, stderr } = await payoutd(['payout', 'list', '--batch', 'nov', '--limit', '1'], env)
  assert.match(stdout, /PAYOUT .*\n +F[A-Z2-7]{26} +nov +8 +₹50,000.00 +queued +\d{4}-/)
  assert.equal(stderr, 'there are more; --limit 1 shows only the first\n')
  const db = connectDatabase({ url: env.DATABASE_URL ?? '', connections: 1, applicationName: 'test' })
  await db.run(declare, {}).finally(() => db.close())
  const declared = await payoutd(['payout', 'list', '--batch', 'nov', '--state', 'paid'], env)
  assert.equal(
    declared.stderr,
    'declared 800 of ₹40,00,000.00 (2026-11-21 12:00:00.000Z), here 2 of ₹1,00,000.00\n',
  )
  const lost = await payoutd(['payout', 'list', '--batch', 'dec'], env)
  assert.match(
    lost.stderr,
    /^merchant acme has no payout of batch dec \(declared 5 of ₹50.00 .*, here 0 of ₹0.00\)/,
  )
  const { stdout: story } = await payoutd(['payout', 'show', 'nov/EMP 7/b'], env)
  assert.match(story, new RegExp(`^found by its batch and reference\npayout ${fromFile.payoutId} of acme`))
})

test('with several merchants, the operator must say whose payout it is', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'merchants.json')
  const merchant = { baseUrl: 'http://127.0.0.1:9', mchId: '1', key: 'env:GATEWAY_KEY' }
  writeFileSync(
    file,
    JSON.stringify({
      merchants: [
        { id: 'acme', ...merchant },
        { id: 'bolt', ...merchant },
      ],
    }),
  )
  const env = { ...(await withPayout(t)), MERCHANTS_FILE: file }
  const unsaid = await payoutd(['payout', 'show', 'p-1'], env)
  assert.deepEqual(
    [unsaid.code, unsaid.stderr],
    [1, 'which merchant’s payout? give --merchant, one of acme, bolt\n'],
  )
  const said = await payoutd(['payout', 'show', 'p-1', '--merchant', 'acme'], env)
  assert.equal(said.code, 0)
})

test('the error about a database that is away is one line, which names it without its password', async () => {
  const env = testEnvironment({
    url: 'postgres://payoutd:a-secret-word@127.0.0.1:9/payouts',
    db: null as never,
  })
  const { code, stderr } = await payoutd(['payout', 'show', 'p-1'], env)
  assert.equal(code, 1)
  assert.equal(
    stderr,
    'the database 127.0.0.1:9/payouts refuses connections: start it, or correct DATABASE_URL\n',
  )
})
