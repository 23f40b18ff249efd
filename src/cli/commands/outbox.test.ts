import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { testEnvironment } from '../../../test/ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { checkRefused } from '../../doctor/kafka/refused-messages.ts'
import { latestActs } from '../../ledger/sql/acts.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { payoutd } from '../cli.fixture.ts'

const refuse = sql<{ position: bigint; key: string; eventId: string; value: Buffer }>`
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, at, reason)
  values (${'position'}, 3, 'payout.results', ${'key'}, ${'eventId'}, 'in.payoutd.PayoutResult', ${'value'}, now(),
          'MESSAGE_TOO_LARGE')`
const refuseMany = sql<{ count: number }>`
  insert into outbox_refused (position, shard, topic, key, event_id, type, value, at, reason)
  select n, 3, 'payout.results', 'acme:p', gen_random_uuid(), 'in.payoutd.PayoutResult', '', now(), 'MESSAGE_TOO_LARGE'
  from generate_series(1, ${'count'}::int) n`
const waiting = sql<object, { shard: number; key: string; eventId: string; value: Buffer }>`
  select shard, key, event_id, value from ${outboxMessages} order by position, n`

test('messages that Kafka refused are listed without their content, and put back in their order, on record', async (t) => {
  const database = await freshDatabase(t)
  const { db } = database
  const env = testEnvironment(database)
  const refused = [17n, 18n, 40n].map((position) => ({
    ...{ position, key: `acme:p-${position}`, eventId: randomUUID(), value: randomBytes(2_000) },
  }))
  for (const each of refused.toReversed()) await db.run(refuse, each)

  const { stdout } = await payoutd(['outbox', 'list'], env)
  assert.match(
    stdout,
    /MESSAGE .*\n +17 .* MESSAGE_TOO_LARGE +payout.results +acme:p-17 .* 2000\n +18 .*\n +40 /,
  )
  const who = ['--by', 'asha', '--reason', 'the topic takes larger ones now', '--yes']
  const wrong = await payoutd(['outbox', 'retry', '19', ...who], env)
  assert.deepEqual(
    [wrong.code, wrong.stderr],
    [1, 'there is no refused message 19; payoutd outbox list shows all\n'],
  )
  const one = await payoutd(['outbox', 'retry', '18', ...who], env)
  assert.match(one.stdout, /payoutd publishes them again: 18;/)
  const rest = await payoutd(['outbox', 'retry', '--all', '--json', ...who], env)
  assert.deepEqual(JSON.parse(rest.stdout), { messages: ['17', '40'], done: true })
  assert.equal((await payoutd(['outbox', 'list'], env)).stdout, 'none\n')

  const put = await db.run(waiting, {})
  assert.deepEqual(
    put,
    [refused[1], refused[0], refused[2]].map((each) => ({
      ...{ shard: 3, key: each?.key, eventId: each?.eventId, value: each?.value },
    })),
  )
  const acts = await db.run(latestActs, { merchantId: null, since: null, limit: 10 })
  assert.deepEqual(
    acts.map(({ command, by, subjects }) => [command, by, subjects.length]),
    [
      ['outbox retry', 'asha', 2],
      ['outbox retry', 'asha', 1],
    ],
  )
})

test('all messages that Kafka refused are put back, however many, a page at a time', async (t) => {
  const database = await freshDatabase(t)
  const { db } = database
  await db.run(refuseMany, { count: 10_050 })
  const who = ['--by', 'asha', '--reason', 'the topic takes larger ones now', '--yes']
  const { stdout } = await payoutd(['outbox', 'retry', '--all', ...who], testEnvironment(database))
  assert.match(stdout, /payoutd publishes them again: 10050 messages;/)
  assert.equal((await db.run(waiting, {})).length, 10_050)
  const acts = await db.run(latestActs, { merchantId: null, since: null, limit: 100 })
  assert.ok(acts.every(({ subjects }) => subjects.length <= 500))
})

test('doctor warns of messages that Kafka refused, by topic and reason', () => {
  assert.equal(checkRefused([]).state, 'good')
  const finding = checkRefused([{ topic: 'payout.results', reason: 'MESSAGE_TOO_LARGE', count: 2 }])
  assert.equal(finding.state, 'warning')
  assert.match(finding.what, /2 on payout.results \(MESSAGE_TOO_LARGE\)$/)
})
