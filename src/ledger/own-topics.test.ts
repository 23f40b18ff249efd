import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { demandOwnTopics, othersTopics } from './own-topics.ts'
import { putOwnTopics } from './sql/own-topics.ts'

test('a ledger keeps the topics that it first had, until somebody moves it to others', async (t) => {
  const { db } = await freshDatabase(t)
  await demandOwnTopics(db, '')
  await demandOwnTopics(db, '')
  await assert.rejects(
    demandOwnTopics(db, 'test.'),
    /^Error: the topics of this ledger have no prefix, but TOPIC_PREFIX is "test."\. Nothing was done: /,
  )
  await db.run(putOwnTopics, { prefix: 'test.', isMoved: false })
  assert.equal(await othersTopics(db, ''), null)
  await db.run(putOwnTopics, { prefix: 'test.', isMoved: true })
  await demandOwnTopics(db, 'test.')
  assert.equal(
    await othersTopics(db, ''),
    'the topics of this ledger begin with "test.", but TOPIC_PREFIX is ""',
  )
})
