import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { mixUpOnce } from '../../test/mixed-answers.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { settingsInForce } from './sql/settings-in-force.ts'

const clockWasAhead = sql<object>`update mixed_answers set mixed_until = mixed_until + interval '30 days'`
const aheadBy = sql<object, { ms: number }>`
  select (extract(epoch from mixed_until - now()) * 1000)::float8 as ms from mixed_answers`

test('a note that was made while the database’s clock was ahead lasts no longer than one of now, and the next takes its place', async (t) => {
  const { db } = (await testLedger(t)).ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await mixUpOnce(db, 'P7')
  await db.run(clockWasAhead, {})
  const [inForce] = await db.run(settingsInForce, { merchantIds: ['acme'] })
  const until = inForce?.mixedUntil?.[ACCOUNT.baseUrl] ?? Number.NaN
  assert.ok(until < Date.now() + 10_000, String(until))
  await mixUpOnce(db, 'P7')
  assert.ok(((await db.run(aheadBy, {}))[0]?.ms ?? Number.NaN) <= 1_000)
})
