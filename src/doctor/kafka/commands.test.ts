import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { setAsideByMerchant } from '../sql/set-aside.ts'
import { judgeSetAside, judgeStandings } from './commands.ts'

const log = { id: 'log', partition: 0, low: 5n, high: 9n }
const judge = (offset: bigint, logId = 'log') =>
  judgeStandings('payout.commands', [log], [{ partition: 0, offset, logId }])

test('commands that are gone are told of before intake has noticed', () => {
  assert.match(judge(3n).what, /partition 0 has dropped commands that payoutd had not read \(.* at 3\)/)
  assert.match(judge(12n).what, /partition 0 contains less/)
  assert.match(judge(7n, 'old').what, /partition 0 was deleted and created again/)
  for (const finding of [judge(3n), judge(12n), judge(7n, 'old')]) assert.equal(finding.state, 'wrong')
  assert.equal(judge(7n).state, 'good')
  assert.equal(judgeStandings('payout.commands', [log], []).state, 'good')
})

const setAside = sql<{ merchantId: string; count: number }>`
  insert into waiting_commands (merchant_id, topic, partition, record_offset, origin, sealed, at)
  select ${'merchantId'}, 'payout.commands', n % 2, n, '', '', timestamptz '2026-11-21T12:00:00Z'
  from generate_series(1, ${'count'}::int) n`

test('commands that were read and wait in the ledger are told of by merchant', async (t) => {
  const { db } = await freshDatabase(t)
  const judge = async () => judgeSetAside(await db.run(setAsideByMerchant, { countUpTo: 10_000 }))
  assert.equal((await judge()).state, 'good')
  await db.run(setAside, { merchantId: 'bolt', count: 3 })
  await db.run(setAside, { merchantId: 'acme', count: 10_001 })
  const { state, what } = await judge()
  assert.deepEqual(
    [state, what],
    [
      'warning',
      'commands wait in the ledger because payoutd could not apply them: at least 10000 of merchant acme since 2026-11-21 12:00:00.000Z; 3 of merchant bolt since 2026-11-21 12:00:00.000Z',
    ],
  )
})
