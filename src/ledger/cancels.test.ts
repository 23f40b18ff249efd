import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { topicNames, topicSpecs } from '../messages/topics.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { CANCELS_KEPT_DAYS, sweepCancels } from './sql/cancels.ts'

const DAY_MS = 86_400_000

test('payoutd remembers a cancellation for as long as a topic that payoutd creates can hold a command for its payment', () => {
  const topics = topicNames()
  const kept = new Map(
    topicSpecs(topics, { partitions: 1, replication: 1 }).map(({ name, configs }) => [
      name,
      Number(configs['retention.ms']) / DAY_MS,
    ]),
  )
  const [unread = 0, dead = 0] = [topics.commands, topics.deadLetters].map((name) => kept.get(name))
  assert.ok(unread > 0 && dead > 0)
  assert.ok(CANCELS_KEPT_DAYS >= unread + dead + unread)
})

const cancels = sql<{ days: number }>`
  with a as (insert into early_cancels (merchant_id, payout_id, why, source, at)
             values ('acme', 'p', 'left', 'COMMAND', now() - ${'days'}::int * interval '1 day'))
  insert into cancelled_batches (merchant_id, batch_id, why, at)
  values ('acme', 'b', 'left', now() - ${'days'}::int * interval '1 day')`
const waits = sql<object>`
  insert into waiting_commands (merchant_id, topic, partition, record_offset, origin, sealed)
  values ('acme', 't', 0, 1, 't/0/1', '')`
const taken = sql<object>`delete from waiting_commands`
const replays = sql<{ days: number }>`
  insert into letter_replays (letter, replayed_by, reason, at)
  values ('0a', 'asha', 'schema added', now() - ${'days'}::int * interval '1 day')
  on conflict (letter) do update set at = excluded.at`

test('payoutd deletes it after that, but not while a command is set aside, nor after a replay that may have made another dead letter', async (t) => {
  const { db } = await freshDatabase(t)
  const swept = async () => {
    const [row] = await db.run(sweepCancels, { days: CANCELS_KEPT_DAYS, limit: 9 })
    return row?.swept
  }
  await db.run(cancels, { days: CANCELS_KEPT_DAYS - 1 })
  assert.equal(await swept(), 0)
  await db.run(sql<object>`truncate early_cancels, cancelled_batches`, {})
  await db.run(cancels, { days: CANCELS_KEPT_DAYS + 1 })
  await db.run(waits, {})
  assert.equal(await swept(), 0)
  await db.run(taken, {})
  await db.run(replays, { days: CANCELS_KEPT_DAYS - 1 })
  assert.equal(await swept(), 0)
  await db.run(replays, { days: CANCELS_KEPT_DAYS + 1 })
  assert.equal(await swept(), 2)
})
