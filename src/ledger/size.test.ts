import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freshDatabase } from '../../test/database.ts'
import { fill } from '../../test/fill.ts'
import { silentLogger } from '../platform/log.ts'
import { sql, withSession } from '../platform/postgres/postgres.ts'
import { migrate } from './tables/migrate.ts'

/** The migration that every installation began with. */
const BASE = '0001_ledger'
/** Few in `npm test`. PAYOUTS_AT_SIZE=10000000 takes a while; only then do the times mean something. */
const PAYOUTS = Number(process.env.PAYOUTS_AT_SIZE ?? 2_000)
/** The longest that other work may wait meanwhile. */
const LONGEST_WAIT_MS = 3_000

/** The tables that grow with the payouts. */
const LARGE = [
  'payouts',
  'payout_commands',
  'attempts',
  'history',
  'payments',
  'beneficiary_payments',
  'payins',
]

/** Finds at any size what takes long at a large one: a table that is rewritten, an index build that blocks writes. */
const REFUSE_LONG_LOCKS = `
  create function refuse_rewrite() returns event_trigger language plpgsql as $$
  begin
    if pg_event_trigger_table_rewrite_oid()::regclass::text = any ('{${LARGE.join(',')}}') then
      raise exception '% would be written anew', pg_event_trigger_table_rewrite_oid()::regclass;
    end if;
  end $$;
  create event trigger no_rewrite on table_rewrite execute function refuse_rewrite();
  create function refuse_index() returns event_trigger language plpgsql as $$
  declare command record;
  begin
    for command in select * from pg_event_trigger_ddl_commands() where object_type = 'index' loop
      if (select indrelid::regclass::text from pg_index where indexrelid = command.objid) = any ('{${LARGE.join(',')}}')
         and current_query() !~* 'concurrently' then
        raise exception '% is not made concurrently', command.object_identity;
      end if;
    end loop;
  end $$;
  create event trigger no_index on ddl_command_end when tag in ('CREATE INDEX') execute function refuse_index();`

const SLOW = [
  {
    statement: 'alter table payouts alter column version type bigint',
    refused: /payouts would be written anew/,
  },
  { statement: 'create index on payins (utr)', refused: /is not made concurrently/ },
]

const touchOne = sql<{ payoutId: string }>`
  update payouts set updated_at = now() where merchant_id = 'acme' and payout_id = ${'payoutId'}`

async function filled(t: TestContext) {
  const database = await freshDatabase(t, { migrated: false })
  await migrate(database.url, silentLogger, BASE)
  await fill(database.url, PAYOUTS)
  return database
}

test('large tables are migrated while payoutd works on them, and no work waits for long', async (t) => {
  const { url, db } = await filled(t)
  await withSession(url, async (session) => {
    await session.query(REFUSE_LONG_LOCKS)
    for (const { statement, refused } of SLOW) await assert.rejects(session.query(statement), refused)
  })
  let migrating = true
  let longestMs = 0
  const working = (async () => {
    for (let n = 0; migrating; n += 40) {
      const began = performance.now()
      await db.run(touchOne, { payoutId: `p${String(n % PAYOUTS).padStart(9, '0')}` })
      longestMs = Math.max(longestMs, performance.now() - began)
      await delay(5)
    }
  })()
  const began = performance.now()
  const done = await migrate(url, silentLogger).finally(() => {
    migrating = false
  })
  await working
  t.diagnostic(
    `${PAYOUTS} payouts: ${done.length} migrations in ${Math.round(performance.now() - began)} ms, the longest wait of others ${Math.round(longestMs)} ms`,
  )
  assert.ok(longestMs < LONGEST_WAIT_MS, `somebody waited ${Math.round(longestMs)} ms`)
})
