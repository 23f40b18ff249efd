import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { noteServer, serverIdentity } from '../../ledger/sql/server-identity.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { examine } from '../examine.ts'
import { checkHistory, checkStandbys, failoverChecks } from './failover.ts'

const server = { systemIdentifier: '7710948747581368855', timeline: 3n }

test('another history of the database is wrong until somebody has looked at it, and the finding says what to do', () => {
  const promoted = checkHistory(server, { ...server, timeline: 4n })
  assert.equal(promoted.state, 'wrong')
  assert.match(promoted.what, /from timeline 3 to 4/)
  assert.match('todo' in promoted ? promoted.todo : '', /payoutd recover/)
  assert.equal(checkHistory(server, { ...server, systemIdentifier: '1' }).state, 'wrong')
  assert.equal(checkHistory(server, server).state, 'good')
  assert.equal(checkHistory(undefined, server).state, 'good')
})

test('what a commit waits for shows what a failover would cost', () => {
  assert.match(checkStandbys({ names: '', synchronousCommit: 'on' }).what, /can lose the last commits/)
  assert.match(checkStandbys({ names: 'one', synchronousCommit: 'on' }).what, /loses no commit/)
  assert.match(checkStandbys({ names: 'one', synchronousCommit: 'remote_apply' }).what, /loses no commit/)
  for (const names of ['one', '"one"', 'FIRST 1 (one)', 'ANY 2 (one, two)', '2 (one, two)'])
    assert.match(checkStandbys({ names, synchronousCommit: 'on' }).what, /loses no commit/)
  for (const names of ['one, two', '*', 'FIRST 1 (one, two)', 'any 1 (one, two)', '1(one,two)', 'ANY 1 (*)'])
    assert.match(checkStandbys({ names, synchronousCommit: 'on' }).what, /another loses commits/)
  for (const synchronousCommit of ['remote_write', 'local']) {
    assert.equal(checkStandbys({ names: 'one', synchronousCommit }).state, 'warning')
  }
})

test('both checks query a real server', async (t) => {
  const { db } = await freshDatabase(t)
  const [now] = await db.run(serverIdentity, {})
  assert.ok(now)
  await db.run(noteServer, now)
  const found = await examine(
    failoverChecks(db).map((check) => ({ ...check, needs: [] })),
    { addresses: {} as never, limitMs: 10_000, clock: systemClock, onFound: () => undefined },
  )
  assert.deepEqual(
    found.map(({ finding }) => finding.state),
    ['good', 'good'],
  )
})
