import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../log.ts'
import { kafka, newTopic, publisher } from './kafka.fixture.ts'
import { readTopic } from './read-topic.ts'

async function read(topic: string): Promise<string[]> {
  const texts: string[] = []
  const onRecord = ({ value }: { value: Buffer | null }) => void texts.push(String(value))
  await readTopic({ connection: kafka(), topic, onRecord, log: silentLogger })
  return texts
}

test('a topic is read from its beginning to its end, over all its partitions, each time from scratch', async (t) => {
  const topic = await newTopic(3)
  assert.deepEqual(await read(topic), [])
  const publish = publisher(t)
  const texts = Array.from({ length: 60 }, (_, i) => `${i}`)
  for (const text of texts) await publish(topic, [text], `key-${text}`)
  for (let time = 0; time < 2; time++) {
    assert.deepEqual(
      (await read(topic)).toSorted((a, b) => Number(a) - Number(b)),
      texts,
    )
  }
})
