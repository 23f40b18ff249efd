import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../log.ts'
import { kafkaFor } from '../connection.ts'
import { kafka, makeTopic, newTopic, remakeTopic } from '../kafka.fixture.ts'
import { topicIds } from './topic-id.ts'

test('a topic has an id, and a new one after it was deleted and created again', async (t) => {
  const topic = await newTopic(2)
  const ids = topicIds(kafkaFor(kafka(), silentLogger, t.signal))
  t.after(() => ids.close())
  const first = await ids.idOf(topic)
  assert.match(first ?? '', /^[\w-]{22}$/)
  assert.equal(await ids.idOf(topic), first)
  await makeTopic(topic)
  assert.equal(await ids.idOf(topic), first)
  await remakeTopic(topic, 2)
  const second = await ids.idOf(topic)
  assert.match(second ?? '', /^[\w-]{22}$/)
  assert.notEqual(second, first)
})

test('a missing topic has no id, and asking does not create it', async (t) => {
  const ids = topicIds(kafkaFor(kafka(), silentLogger, t.signal))
  t.after(() => ids.close())
  await assert.rejects(ids.idOf('nobody-made-this'), /error code 3/)
  await assert.rejects(ids.idOf('nobody-made-this'), /error code 3/)
})
