import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTransactions, checkWaiting } from './kafka.ts'

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
  const held = (from: bigint) => [{ partition: 3, from, waiting: 2n }]
  assert.equal(checkTransactions([], [], 60_000, 'c').state, 'good')
  assert.equal(checkTransactions(held(7n), held(9n), 60_000, 'c').state, 'good')
  assert.equal(
    checkTransactions(held(7n), held(7n), 60_000, 'c').what,
    'an open transaction holds up commands in c: partition 3 from offset 7 on (2 waiting)',
  )
  assert.equal(checkTransactions([], [], 900_000, 'c').state, 'warning')
  assert.equal(checkTransactions([], [], null, 'c').state, 'good')
})
