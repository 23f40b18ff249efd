import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { testEnvironment, upsertMerchant } from '../../../test/ledger.ts'
import { besideSandbox } from '../../../test/reconcile.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { payoutd } from '../cli.fixture.ts'

const rename = sql<object>`update payouts set utr = 'ANOTHER' where payout_id = 'p-2'`
const utrs = sql<object, { utr: string }>`select utr from payouts order by payout_id`
const day = (days: number) => new Date(systemClock.now() + days * 86_400_000).toISOString().slice(0, 10)
const BY = ['--by', 'asha', '--reason', 'the month is over']
const PERIOD = ['--from', day(-1), '--to', day(2)]

test('a period is reconciled for people and for programs, and against a statement; the exit code shows the result', async (t) => {
  const { env, pay, db } = await besideSandbox(t)
  await pay('p-1', 'p-2')
  const stated = await db.run(utrs, {})
  const good = await payoutd(['reconcile', ...PERIOD], env)
  assert.deepEqual([good.code, good.stderr], [0, ''])
  assert.match(good.stdout, /: 2 were sent\n/)
  assert.match(good.stdout, /here +2 +₹200\.00 +₹10\.00\n +there +2 +₹200\.00 +₹10\.00/)
  assert.match(good.stdout, /all 2 agree/)

  await db.run(rename, {})
  const folder = mkdtempSync(path.join(tmpdir(), 'reconcile-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const statement = path.join(folder, 'statement.csv')
  writeFileSync(statement, `utr,amount\n${stated[0]?.utr},100\n${stated[1]?.utr},100\n`)
  const bad = await payoutd(['reconcile', ...PERIOD, '--statement', statement, '--rate', '50/s'], env)
  assert.equal(bad.code, 1)
  assert.match(bad.stdout, new RegExp(`utr: 1, ₹100\\.00\n.*\n.* p-2 .* ANOTHER +${stated[1]?.utr}\n`))
  assert.match(bad.stdout, /statement: 2 lines, ₹200\.00/)
  assert.match(bad.stdout, new RegExp(`only-in-statement +3 +${stated[1]?.utr} `))
  assert.match(bad.stdout, /not-in-statement +ANOTHER +p-2 +₹100\.00 +none/)

  const json = await payoutd(['reconcile', ...PERIOD, '--json'], env)
  const { ending, agrees, run, totals, differing } = JSON.parse(json.stdout)
  assert.deepEqual([json.code, ending, agrees, totals.amountHere], [1, 'all-asked', false, '20000'])
  assert.ok(run.finishedAt >= run.startedAt)
  assert.deepEqual(differing[0].differences, [{ kind: 'utr', here: 'ANOTHER', there: stated[1]?.utr }])
  const again = await payoutd(['reconcile', '--resume', run.reconciliationId, '--json'], env)
  assert.deepEqual(JSON.parse(again.stdout).differing, differing)
})

test('payoutd records who had the differences settled, with the state of the run before and after', async (t) => {
  const { env, send } = await besideSandbox(t)
  await send('p-1', 'p-2')
  const settle = ['reconcile', ...PERIOD, '--settle', '--yes', ...BY]
  const first = await payoutd(settle, env)
  assert.equal(first.code, 0, first.stderr)
  const acts = await payoutd(['acts', 'list', '--json'], env)
  const kept = acts.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const stand = ({ listed, asked, differing, settled, ending }: Record<string, unknown>) => ({
    ...{ listed, asked, differing, settled, ending },
  })
  const begun = { listed: 0, asked: 0, differing: 0, settled: 0, ending: undefined }
  const ended = { listed: 2, asked: 2, differing: 0, settled: 2, ending: 'all-asked' }
  assert.deepEqual(
    kept
      .reverse()
      .map(({ command, by, before, after }) => [command, by, stand(before), after && stand(after)]),
    [
      ['reconcile --settle', 'asha', begun, null],
      ['reconcile --settle', 'asha', begun, ended],
    ],
  )
})

test('with the gateway down, nothing is reported as agreed, and no balance of former runs is shown', async (t) => {
  const { env, pay } = await besideSandbox(t)
  await pay('p-1', 'p-2')
  await payoutd(['reconcile', ...PERIOD], env)
  await payoutd(['reconcile', ...PERIOD], env)
  const down = { ...env, GATEWAY_BASE_URL: 'http://127.0.0.1:9' }
  const { code, stdout, stderr } = await payoutd(['reconcile', ...PERIOD], down)
  assert.equal(code, 1)
  assert.match(
    stdout,
    /: 2 were sent, the gateway has answered about 0\n\nbalance: the gateway did not return it/,
  )
  assert.doesNotMatch(stdout, /agree|₹/)
  assert.match(
    stderr,
    /did not answer about all of them \(queried without an answer: 2, not yet queried: 0; the settings lack account [0-9a-f]+: add it to formerAccounts\): /,
  )
})

test('settings that are not in force settle nothing', async (t) => {
  const { env, db } = await besideSandbox(t)
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'others', feeEstimate: 0n })
  const { code, stderr } = await payoutd(['reconcile', ...PERIOD, '--settle', '--yes', ...BY], env)
  assert.equal(code, 1)
  assert.match(stderr, /merchant acme: its base URL here is .* Nothing was done: use the settings in force/)
})

test('reconcile refuses unusable input before it asks anything', async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await payoutd(['reconcile', ...args], env)
    assert.deepEqual([code, stdout], [1, ''])
    return stderr
  }
  assert.match(await refused(), /which period\? give --from and a later --to/)
  assert.match(await refused(...PERIOD, '--statement', '/no/such/file'), /cannot be read \(ENOENT\)/)
  assert.match(await refused(...PERIOD, '--settle', ...BY), /no terminal to ask on: give --yes/)
})
