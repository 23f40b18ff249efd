import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTransactions, checkWaiting } from './kafka.ts'

test('commands that wait while intake works on them are good; commands that only wait are not', () => {
  const at = (waiting: bigint, ever: bigint) => ({ waiting, ever })
  assert.equal(checkWaiting(at(0n, 10n), at(0n, 10n), 'c').state, 'good')
  assert.equal(
    checkWaiting(at(90n, 100n), at(90n, 150n), 'c').what,
    '90 commands wait in c, and payoutd is reading them',
  )
  const stuck = checkWaiting(at(90n, 100n), at(95n, 105n), 'c')
  assert.equal(stuck.what, '95 commands wait in c, and no payoutd reads them')
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
