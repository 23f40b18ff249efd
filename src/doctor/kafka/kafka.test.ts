import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkLag, checkTransactions } from './kafka.ts'

const at = (committed: bigint | null, lag: bigint) => [{ topic: 'c', partition: 0, committed, lag }]

test('commands that wait while intake works on them are good; commands that only wait are not', () => {
  assert.equal(checkLag(at(10n, 0n), at(10n, 0n), 'c').state, 'good')
  assert.equal(
    checkLag(at(10n, 90n), at(60n, 90n), 'c').what,
    '90 commands wait in c, and payoutd is reading them',
  )
  const stuck = checkLag(at(10n, 90n), at(10n, 95n), 'c')
  assert.equal(stuck.what, '95 commands wait in c, and no payoutd reads them')
})

test('a group that never read anything is as far behind as the topic is long', () => {
  assert.equal(checkLag(at(null, 3n), at(null, 3n), 'c').state, 'wrong')
  assert.equal(checkLag(at(null, 3n), at(2n, 1n), 'c').state, 'good')
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
