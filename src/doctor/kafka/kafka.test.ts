import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectAdmin } from '../../platform/kafka/admin.ts'
import { kafka, newTopic, openTransaction } from '../../platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../../platform/log.ts'
import { checkTransactions, checkWaiting, type KafkaToCheck, kafkaChecks } from './kafka.ts'

test('commands that wait are good while intake works on them, in each partition', () => {
  const at = (waiting: bigint, read: bigint, partition = 0) => ({ partition, waiting, read })
  assert.equal(checkWaiting([at(0n, 10n)], [at(0n, 10n)], 'c').state, 'good')
  assert.equal(
    checkWaiting([at(90n, 10n)], [at(90n, 60n)], 'c').what,
    '90 commands wait in c, and payoutd is reading them',
  )
  assert.equal(checkWaiting([at(0n, 10n)], [at(5n, 10n)], 'c').state, 'good')
  assert.equal(
    checkWaiting([at(90n, 10n)], [at(95n, 10n)], 'c').what,
    '95 commands wait in c, and no payoutd reads them: partition 0 from offset 10 on',
  )
  assert.equal(
    checkWaiting([at(90n, 10n), at(7n, 3n, 1)], [at(20n, 80n), at(9n, 3n, 1)], 'c').what,
    '9 commands wait in c, and no payoutd reads them: partition 1 from offset 3 on',
  )
})

test('a transaction that is open at both looks is named, and so is a broker that lets one stay open for long', () => {
  const held = (from: bigint, topic = 'c') => [{ topic, partition: 3, from, waiting: 2n }]
  assert.equal(checkTransactions([], [], 60_000).state, 'good')
  assert.equal(checkTransactions(held(7n), held(9n), 60_000).state, 'good')
  assert.equal(checkTransactions(held(7n), held(7n, 'd'), 60_000).state, 'good')
  assert.equal(
    checkTransactions(held(7n), held(7n), 60_000).what,
    'an open transaction holds up what stands behind it, which nobody can read until it ends: c, partition 3 from offset 7 on (2 waiting)',
  )
  assert.equal(checkTransactions([], [], 900_000).state, 'warning')
  assert.equal(checkTransactions([], [], null).state, 'good')
})

test('an open transaction is found in any topic of payoutd', async (t) => {
  const specs = [{ name: await newTopic() }, { name: await newTopic() }]
  const results = specs[1]?.name as string
  const transaction = await openTransaction(t, [results])
  const admin = await connectAdmin(kafka(), silentLogger)
  t.after(() => admin.close())
  const checks = kafkaChecks({ connect: async () => admin, specs } as unknown as KafkaToCheck)
  const found = await checks.find(({ name }) => name === 'transactions')?.run()
  await transaction.abort()
  assert.equal(found?.state, 'warning')
  assert.ok(found?.what.endsWith(`: ${results}, partition 0 from offset 0 on (1 waiting)`), found?.what)
})
