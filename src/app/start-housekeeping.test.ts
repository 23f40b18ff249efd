import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../test/ledger.ts'
import { silentLogger } from '../platform/log.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { systemClock } from '../platform/running/clock.ts'
import type { Shared } from './shared.ts'
import { startHousekeeping } from './start-housekeeping.ts'

const HOUR_MS = 3_600_000
const rememberOld = sql<object>`
  insert into cancelled_batches (merchant_id, batch_id, why, at) values ('acme', 'old', '', now() - interval '1 year')`
const remembered = sql<object>`select from cancelled_batches`

for (const [aheadMs, left] of [
  [0, 0],
  [13 * HOUR_MS, 1],
  [-13 * HOUR_MS, 1],
] as const)
  test(`housekeeping ${left ? 'deletes nothing' : 'deletes what is old'} if a clock is ${aheadMs} ms ahead of the other`, async (t) => {
    const { ledger, config } = await testLedger(t)
    const { db } = ledger
    await db.run(rememberOld, {})
    const loops = new Map<string, (sign: () => void) => Promise<number>>()
    const lifecycle = {
      loop: (name: string, turn: (sign: () => void) => Promise<number>) => loops.set(name, turn),
    }
    const clock = { ...systemClock, now: () => Date.now() + aheadMs }
    startHousekeeping({ config, ledger, lifecycle, clock, log: silentLogger } as unknown as Shared)
    await loops.get('housekeeping')?.(() => undefined)
    assert.equal((await db.run(remembered, {})).length, left)
  })
