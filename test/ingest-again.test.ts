import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startPayoutd } from '../src/app/start.ts'
import { payoutd } from '../src/cli/cli.fixture.ts'
import { withLedger } from '../src/cli/with-ledger.ts'
import { readConfig } from '../src/config/config.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { topicNames } from '../src/messages/topics.ts'
import { kafkaFor } from '../src/platform/kafka/connection.ts'
import { kafka, makeTopic, unique } from '../src/platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from './database.ts'
import { accepted, registered, testEnvironment } from './ledger.ts'

test('without a terminal a file that does not match its batch is published only with --yes', async (t) => {
  const { env, config, ...installed } = await installation(t, ['000017'])
  const ingest = (...options: string[]) => installed.ingest(env, ...options)
  await withLedger(config, (ledger) => accepted(ledger, config, [command('p-17', { batchId: 'nov' })]))

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
  const unread = await ingest()
  assert.equal(unread.code, 3, unread.stderr)
  assert.match(unread.stdout, /does not have 1 of the payouts .*, and has not stored 2 commands yet/)
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
  const running = await startPayoutd(config, new Set(['intake']), silentLogger)
  t.after(() => running.stop())
  assert.equal((await ingest()).code, 0)
  const cancel = ['payout', 'cancel', '--batch', 'nov', '--by', 'meera', '--reason', 'wrong file', '--yes']
  assert.match((await payoutd(cancel, env)).stdout, /p-17 is cancelled/)
  const cancelled = await ingest()
  assert.equal(cancelled.code, 3, cancelled.stderr)
  assert.match(
    cancelled.stdout,
    /already published for this batch\. But the batch was cancelled \(meera: wrong file /,
  )
})

/** An installation with one merchant, and a file of payouts with these references. */
async function installation(t: TestContext, references = ['E1', 'E2']) {
  const database = await freshDatabase(t)
  const env = testEnvironment(database, { TOPIC_PREFIX: `${unique('again')}.`, TOPIC_PARTITIONS: '1' })
  const config = readConfig(env)
  await registered(config)
  const topics = topicNames(config.topicPrefix)
  for (const topic of Object.values(topics)) await makeTopic(topic, 1)
  const folder = mkdtempSync(path.join(tmpdir(), 'payroll-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'payroll.csv')
  writeFileSync(
    file,
    [
      'reference,account_name,account_no,ifsc,amount',
      ...references.map((reference, i) => `${reference},Asha Rao,501001234567${8 + i},HDFC0001234,500`),
      '',
    ].join('\n'),
  )
  return {
    ...{ env, config, topics },
    ingest: (as: NodeJS.ProcessEnv, ...options: string[]) =>
      payoutd(['ingest', file, '--batch', 'nov', ...options], as),
    async serve(as: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
      const running = await startPayoutd(readConfig(as), new Set(['intake', 'relay']), silentLogger)
      t.after(() => running.stop())
      return () => running.stop()
    },
    payouts: async () => (await database.db.run(countPayouts, {}))[0]?.count,
    isRead: () =>
      eventually('intake has read the file', async () => {
        const [at] = await database.db.run(nextOffset, { topic: topics.commands })
        return at?.offset === 3n
      }),
  }
}

const countPayouts = sql<object, { count: number }>`select count(*)::int as count from payouts`
const nextOffset = sql<{ topic: string }, { offset: bigint }>`
  select next_offset as offset from intake_offsets where topic = ${'topic'}`

test('a file whose commands became dead letters is published again once serve knows its merchant', async (t) => {
  const { env, ingest, serve, payouts, isRead } = await installation(t)
  const bolt = { ...env, MERCHANT_ID: 'bolt', GATEWAY_MCH_ID: '2000200', GATEWAY_KEY: 'another-key-of-bolt' }
  const stop = await serve(env)
  assert.equal((await ingest(bolt)).code, 0)
  await isRead()
  await stop()
  await serve(bolt)
  const again = await ingest(bolt)
  assert.equal(again.code, 0, again.stdout)
  assert.match(again.stdout, /was published again, because payoutd did not have 2 of the payouts/)
  await eventually('the payouts are there', async () => (await payouts()) === 2)
  const third = await ingest(bolt)
  assert.equal(third.code, 0, third.stdout)
  assert.match(third.stdout, /already published for this batch/)
})

test('a file whose commands Kafka dropped before intake read them is published again', async (t) => {
  const { env, topics, ingest, serve, payouts } = await installation(t)
  assert.equal((await ingest(env)).code, 0)
  const ended = new AbortController()
  const admin = kafkaFor(kafka(), silentLogger, ended.signal).admin()
  await admin.connect()
  await admin.fetchTopicOffsets(topics.commands)
  await admin.deleteTopicRecords({ topic: topics.commands, partitions: [{ partition: 0, offset: '-1' }] })
  await admin.disconnect()
  ended.abort()
  await serve(env)
  const again = await ingest(env)
  assert.equal(again.code, 0, again.stdout)
  assert.match(again.stdout, /was published again, because payoutd did not have 2 of the payouts/)
  await eventually('the payouts are there', async () => (await payouts()) === 2)
})
