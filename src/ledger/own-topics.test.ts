import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { connectDatabase } from '../platform/postgres/postgres.ts'
import { demandOwnTopics, moveTopics, noteOwnTopics, othersTopics } from './own-topics.ts'
import { putOwnTopics } from './sql/kafka/own-topics.ts'

test('a ledger keeps the topics that it first had, until somebody moves it to others', async (t) => {
  const { db } = await freshDatabase(t)
  await noteOwnTopics(db, '')
  await noteOwnTopics(db, '')
  await assert.rejects(
    noteOwnTopics(db, 'test.'),
    /^Error: the topics of this ledger have no prefix, but TOPIC_PREFIX is "test."\. Nothing was done: /,
  )
  await db.run(putOwnTopics, { prefix: 'test.', isMoved: false })
  assert.equal(await othersTopics(db, ''), null)
  await moveTopics(db, 'test.', { by: 'asha', reason: 'a new Kafka' })
  await demandOwnTopics(db, 'test.')
  assert.equal(
    await othersTopics(db, ''),
    'the topics of this ledger begin with "test.", but TOPIC_PREFIX is ""',
  )
})

test('a command that only reads works where nothing can be written', async (t) => {
  const { db, url } = await freshDatabase(t)
  await noteOwnTopics(db, '')
  const reader = new URL(url)
  reader.searchParams.set('options', '-c default_transaction_read_only=on')
  const readOnly = connectDatabase({ url: reader.href, connections: 1, applicationName: 'test' })
  t.after(() => readOnly.close())
  await noteOwnTopics(readOnly, '')
  await demandOwnTopics(readOnly, '')
})
