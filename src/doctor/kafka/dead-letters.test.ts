import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { scrub } from '../../domain/mask.ts'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import { kafka, newTopic, publisher } from '../../platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { keepReplays } from '../../stages/intake/sql/replays.ts'
import { deadLetterChecks } from './dead-letters.ts'

test('dead letters cause a warning until each was replayed', async (t) => {
  const { ledger } = await testLedger(t)
  const topic = await newTopic(2)
  const [check] = deadLetterChecks(ledger.db, { connect: () => connectAdmin(kafka(), silentLogger), topic })
  const found = async () => {
    const finding = await check?.run()
    return [finding?.state, finding?.what]
  }
  assert.deepEqual(await found(), ['good', 'no dead letter waits to be replayed'])

  const publish = publisher(t)
  await publish(topic, ['one', 'two'], 'a')
  await publish(topic, ['three'], 'b')
  const never = 'never replayed: the ledger has nothing of these commands'
  assert.deepEqual(await found(), ['warning', `3 dead letters were ${never}`])

  let log = topic
  const replayed = (letters: readonly { partition: number; position: bigint }[]) =>
    ledger.db.run(keepReplays, {
      replayed: letters.map((letter) => ({ ...letter, topic: log })),
      by: 'asha',
      reason: scrub('merchant added'),
    })
  const admin = await connectAdmin(kafka(), silentLogger)
  const letters = (await admin.ranges(topic)).flatMap(({ partition, low, high }) =>
    Array.from({ length: Number(high - low) }, (_, i) => ({ partition, position: low + BigInt(i) })),
  )
  const id = await admin.idOf(topic)
  await admin.close()
  const [last, ...others] = letters
  await replayed(others)
  // From a Kafka that was replaced: there is no letter at that position now.
  await replayed([0, 1].map((partition) => ({ partition, position: 900n })))
  assert.deepEqual(await found(), ['warning', `1 dead letter was ${never}`])
  // From a deleted topic of the same name.
  log = `${topic}#another`
  await replayed(last ? [last] : [])
  assert.deepEqual(await found(), ['warning', `1 dead letter was ${never}`])
  log = `${topic}#${id}`
  await replayed(last ? [last] : [])
  assert.deepEqual(await found(), ['good', 'no dead letter waits to be replayed'])
})
