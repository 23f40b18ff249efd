import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../devkit/local/servers/testing.ts'
import { accepted, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { orderNumber } from '../domain/identifiers.ts'
import type { Payout } from '../domain/payout/payout.ts'
import { sql, type Transaction } from '../platform/postgres/postgres.ts'
import { lockOrders, lockPayouts } from './ledger.ts'

const waiting = sql<object, { pid: number }>`
  select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const unlocked = sql<object, { payoutId: string }>`select payout_id from payouts for update skip locked`
const nextVersion = sql<{ payoutId: string }>`
  update payouts set version = version + 1 where payout_id = ${'payoutId'}`

type Key = { merchantId: string; payoutId: string; mchOrderNo: string }
const key = (merchantId: string, payoutId: string): Key => ({
  merchantId,
  payoutId,
  mchOrderNo: orderNumber(merchantId, payoutId, 1),
})
const first = key('acme', 'p1')
const second = key('acme', 'p2')
const third = key('bolt', 'p0')

const ways: Record<string, (tx: Transaction, keys: readonly Key[]) => Promise<Payout[]>> = {
  payoutId: lockPayouts,
  'order number': lockOrders,
}
for (const [name, lock] of Object.entries(ways)) {
  test(`payouts are locked by ${name} one after the other, by merchant first, and read once they are locked`, async (t) => {
    const { ledger, config } = await testLedger(t)
    const commands = [first, second, third].map(({ merchantId, payoutId }) =>
      command(payoutId, { merchantId }),
    )
    await accepted(ledger, config, commands)

    const held = Promise.withResolvers<void>()
    const letGo = Promise.withResolvers<void>()
    const holding = ledger.db.transaction('test', async (tx) => {
      await tx.run(nextVersion, second)
      held.resolve()
      await letGo.promise
    })
    await held.promise
    const locking = ledger.db.transaction('test', (tx) => lock(tx, [third, second, first]))
    await until('the lock is waited for', async () => (await ledger.db.run(waiting, {})).length > 0)
    const free = await ledger.db.run(unlocked, {})
    letGo.resolve()
    await holding

    assert.deepEqual(free, [{ payoutId: third.payoutId }])
    assert.deepEqual(
      (await locking).map(({ payoutId, version }) => [payoutId, version]),
      [
        ['p1', 1],
        ['p2', 2],
        ['p0', 1],
      ],
    )
  })
}
