import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { setAsideByMerchant } from '../sql/set-aside.ts'
import { checkSetAside, checkStandings } from './commands.ts'

const log = { id: 'log', partition: 0, low: 5n, high: 9n }
const check = (offset: bigint, logId = 'log') =>
  checkStandings('payout.commands', [log], [{ partition: 0, offset, logId }])

test('commands that are gone are reported before intake notices', () => {
  assert.match(check(3n).what, /partition 0 has dropped commands that payoutd had not read \(.* at 3\)/)
  assert.match(check(12n).what, /partition 0 contains less/)
  assert.match(check(7n, 'old').what, /partition 0 was deleted and created again/)
  for (const finding of [check(3n), check(12n), check(7n, 'old')]) assert.equal(finding.state, 'wrong')
  assert.equal(check(7n).state, 'good')
  assert.equal(checkStandings('payout.commands', [log], []).state, 'good')
})

const setAside = sql<{ merchantId: string; count: number }>`
  insert into waiting_commands (merchant_id, topic, partition, record_offset, origin, sealed, at)
  select ${'merchantId'}, 'payout.commands', n % 2, n, '', '', timestamptz '2026-11-21T12:00:00Z'
  from generate_series(1, ${'count'}::int) n`

test('commands that intake has read and that wait in the ledger are reported by merchant', async (t) => {
  const { db } = await freshDatabase(t)
  const check = async () => checkSetAside(await db.run(setAsideByMerchant, { countUpTo: 10_000 }))
  assert.equal((await check()).state, 'good')
  await db.run(setAside, { merchantId: 'bolt', count: 3 })
  await db.run(setAside, { merchantId: 'acme', count: 10_001 })
  const { state, what } = await check()
  assert.deepEqual(
    [state, what],
    [
      'warning',
      'commands wait in the ledger because payoutd could not apply them: at least 10000 of merchant acme since 2026-11-21 12:00:00.000Z; 3 of merchant bolt since 2026-11-21 12:00:00.000Z',
    ],
  )
})
