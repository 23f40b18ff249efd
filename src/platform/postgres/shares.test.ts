import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { type Database, sql } from './postgres.ts'
import { shareOf } from './shares.ts'

const lockTimeout = () => Object.assign(new pg.DatabaseError('a lock', 0, 'error'), { code: '55P03' })

/** A database on which the test decides when each use ends. */
function waiting() {
  const uses: PromiseWithResolvers<never[]>[] = []
  const run = () => {
    const use = Promise.withResolvers<never[]>()
    uses.push(use)
    return use.promise
  }
  return { uses, db: { run } as unknown as Database }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a merchant uses at most three connections, one while its locks are held, and the others always have theirs', async () => {
  const { uses, db } = waiting()
  const use = (merchantId: string) => shareOf(db, merchantId).run(sql<object>`select 1`, {})
  const all = Promise.allSettled(Array.from({ length: 9 }, () => use('acme')))
  await settled()
  assert.equal(uses.length, 3)
  void use('bolt')
  await settled()
  assert.equal(uses.length, 4)

  for (const each of uses.splice(0, 3)) each.reject(lockTimeout())
  await settled()
  assert.equal(uses.length, 1 + 1)
  uses[1]?.reject(lockTimeout())
  await settled()
  assert.equal(uses.length, 1 + 2)
  uses[2]?.resolve([])
  await settled()
  assert.equal(uses.length, 1 + 2 + 3)
  for (const each of uses) each.resolve([])
  await settled()
  for (const each of uses) each.resolve([])
  assert.equal((await all).filter(({ status }) => status === 'rejected').length, 4)
})
