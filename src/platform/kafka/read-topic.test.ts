import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { silentLogger } from '../log.ts'
import { eventually } from '../running/eventually.fixture.ts'
import { kafka, newTopic, openTransaction, publisher, remakeTopic } from './kafka.fixture.ts'
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

test('what the caller throws ends the reading, and it is called no more', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, ['1', '2', '3'])
  let calls = 0
  const onRecord = () => {
    if (++calls === 2) throw new Error('the database is away')
  }
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, log: silentLogger }),
    /the database is away/,
  )
  assert.equal(calls, 2)
})

test('a signal ends the reading', async (t) => {
  const topic = await newTopic()
  await publisher(t)(topic, ['1'])
  const abort = new AbortController()
  const onRecord = async () => abort.abort(new Error('Ctrl-C'))
  const { signal } = abort
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, signal, log: silentLogger }),
    /Ctrl-C/,
  )
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, signal, log: silentLogger }),
    /Ctrl-C/,
  )
})

test('a topic that ends with the marker of a transaction is read to its end', async (t) => {
  const topic = await newTopic()
  await (await openTransaction(t, [topic])).commit()
  // Kafka writes the marker a moment after it has acknowledged the commit.
  await eventually('the transaction is over', async () => (await read(topic)).length === 1)
})

test('a topic in which a transaction stays open is not read at all, and one whose transaction ends soon is read whole', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  await publish(topic, ['paid 1'])
  const transaction = await openTransaction(t, [topic])
  await publish(topic, ['paid 2', 'paid 3'])
  const onRecord = () => assert.fail('nothing may be concluded')
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, log: silentLogger }),
    new RegExp(
      `^Error: a program left a transaction open in ${topic}, partition 0 from offset 1 on \\(3 waiting\\), so payoutd ` +
        'cannot read the topic to its end and concludes nothing from it: end the program .* transaction.timeout.ms.* ' +
        'kafka-transactions.sh .* abort ends it; then run the command again$',
    ),
  )
  const [texts] = await Promise.all([read(topic), delay(1_000).then(() => transaction.abort())])
  assert.deepEqual(texts, ['paid 1', 'paid 2', 'paid 3'])
})

test('a signal ends the wait for a transaction', async (t) => {
  const topic = await newTopic()
  const transaction = await openTransaction(t, [topic])
  const signal = AbortSignal.abort(new Error('Ctrl-C'))
  const onRecord = () => undefined
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, signal, log: silentLogger }),
    /Ctrl-C/,
  )
  await transaction.abort()
})

test('if the topic is made again meanwhile, the reading ends and says so', async (t) => {
  const topic = await newTopic()
  const publish = publisher(t)
  // Two fetches, so that the second one meets the topic that was made again.
  for (const text of ['1', '2']) await publish(topic, [text.repeat(800_000)])
  let isFirst = true
  const onRecord = async () => {
    if (!isFirst) return
    isFirst = false
    await remakeTopic(topic)
  }
  await assert.rejects(
    readTopic({ connection: kafka(), topic, onRecord, log: silentLogger }),
    /was replaced while payoutd read it: run the command again/,
  )
})
