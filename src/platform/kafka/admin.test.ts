import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { silentLogger } from '../log.ts'
import { connectAdmin } from './admin.ts'
import { kafka, makeTopic, unique } from './kafka.fixture.ts'

test('tells of many topics that it is asked about at the same time', async (t) => {
  const topics = Array.from({ length: 30 }, () => unique('many'))
  for (const topic of topics) await makeTopic(topic)
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  const asked = topics.map(async (topic, i) => {
    await delay(i)
    const [[range], [described]] = await Promise.all([admin.ranges(topic), admin.describeTopics([topic])])
    return [range, described?.name]
  })
  const each = topics.map((topic) => [{ partition: 0, low: 0n, high: 0n }, topic])
  assert.deepEqual(await Promise.all(asked), each)
})
