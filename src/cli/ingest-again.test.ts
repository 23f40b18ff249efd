import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { accepted, registered, testEnvironment } from '../../test/ledger.ts'
import { readConfig } from '../config/config.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { topicNames } from '../messages/topics.ts'
import { makeTopic, unique } from '../platform/kafka/kafka.fixture.ts'
import { payoutd } from './cli.fixture.ts'
import { withLedger } from './with-ledger.ts'

test('without a terminal a file that does not match its batch is published only with --yes', async (t) => {
  const env = testEnvironment(await freshDatabase(t), { TOPIC_PREFIX: `${unique('again')}.` })
  const config = readConfig(env)
  await registered(config)
  await makeTopic(topicNames(config.topicPrefix).commands, 2)
  const folder = mkdtempSync(path.join(tmpdir(), 'payroll-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'payroll.csv')
  writeFileSync(
    file,
    'reference,account_name,account_no,ifsc,amount\n000017,Asha Rao,5010012345678,HDFC0001234,500\n',
  )
  await withLedger(config, (ledger) => accepted(ledger, config, [command('p-17', { batchId: 'nov' })]))
  const ingest = (...options: string[]) => payoutd(['ingest', file, '--batch', 'nov', ...options], env)

  const comparison =
    '- 1 of ₹50,000.00 of the batch are paid or may still be paid\n' +
    '- 0 of ₹0.00 of the file are in the ledger already, and are not paid again\n' +
    '- 0 of ₹0.00 of the file are in the ledger with another amount or payee, and stay as they were\n' +
    '- 1 of ₹500.00 of the file are new, and will be paid\n' +
    '- 1 of ₹50,000.00 of the batch are not in the file, and will still be paid'
  const refused = await ingest()
  assert.equal(refused.code, 3, refused.stderr)
  assert.ok(refused.stdout.includes(`Nothing was published. Check this, and give --yes`))
  assert.ok(refused.stdout.includes(comparison), refused.stdout)
  const dry = await ingest('--dry-run')
  assert.equal(dry.code, 0, dry.stderr)
  assert.ok(dry.stdout.includes(comparison), dry.stdout)
  const agreed = await ingest('--yes', '--by', 'meera', '--reason', 'november')
  assert.equal(agreed.code, 0, agreed.stderr)
  assert.match(agreed.stdout, /Published: 1 payouts/)
  assert.equal((await ingest()).code, 0)
  const { stdout } = await payoutd(['acts', 'list', '--json'], env)
  const acts = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    acts.map(({ command, by, reason, subjects, after }) => [
      ...[command, by, reason, subjects, after.payable.rows],
      after.ending,
    ]),
    ['published', undefined].map((ending) => ['ingest', 'meera', 'november', ['nov'], 1, ending]),
  )
  const cancel = ['payout', 'cancel', '--batch', 'nov', '--by', 'meera', '--reason', 'wrong file', '--yes']
  assert.match((await payoutd(cancel, env)).stdout, /p-17 is cancelled/)
  const cancelled = await ingest()
  assert.equal(cancelled.code, 3, cancelled.stderr)
  assert.match(
    cancelled.stdout,
    /already published for this batch\. But the batch was cancelled \(meera: wrong file /,
  )
})
