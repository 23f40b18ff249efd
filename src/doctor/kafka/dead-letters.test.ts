import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import { kafka, newTopic, openTransaction, publisher } from '../../platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { checkDeadLetters } from './dead-letters.ts'

test('dead letters cause a warning until each was replayed; payoutd looks at no more than some thousand', async (t) => {
  const topic = await newTopic(2)
  const found = async (unreplayed: () => Promise<number>) => {
    const connect = () => connectAdmin(kafka(), silentLogger)
    const { state, what } = await checkDeadLetters({ connect, topic, unreplayed })
    return [state, what]
  }
  const unread = () => assert.fail('there is nothing to read')
  assert.deepEqual(await found(unread), ['good', 'no dead letter waits to be replayed'])

  const publish = publisher(t)
  await publish(topic, ['one', 'two'], 'a')
  await publish(topic, ['three'], 'b')
  const never = 'never replayed'
  assert.deepEqual(await found(async () => 3), ['warning', `3 dead letters were ${never}`])
  assert.deepEqual(await found(async () => 1), ['warning', `1 dead letter was ${never}`])
  assert.deepEqual(await found(async () => 0), ['good', 'no dead letter waits to be replayed'])

  await publish(
    topic,
    Array.from({ length: 10_000 }, (_, i) => String(i)),
    'a',
  )
  const many = 'holds 10003 dead letters: too many to look at here'
  assert.deepEqual(await found(unread), ['warning', `${topic} ${many}`])
})

test('a topic whose first record waits for the end of a transaction is not taken for empty', async (t) => {
  const topic = await newTopic()
  const transaction = await openTransaction(t, [topic])
  const connect = () => connectAdmin(kafka(), silentLogger)
  const unreplayed = () => Promise.reject(new Error('it cannot be read'))
  await assert.rejects(checkDeadLetters({ connect, topic, unreplayed }), /it cannot be read/)
  await transaction.abort()
})
