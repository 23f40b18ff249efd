import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger, upsertMerchant } from '../../../test/ledger.ts'
import type { BalanceAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { silentLogger } from '../../platform/log.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { Balances } from './balance.ts'

const nothing = paise(0n)
const balanceOf = (available: bigint): BalanceAnswer => ({
  ...{ kind: 'balance', busNo: null, amount: paise(available), availableAmount: paise(available) },
  ...{ frozenAmount: nothing, pendingAmount: nothing, unsettledAmount: nothing },
})

test('while the balance stays the same, payoutd asks for it less often, and as often as before once it has changed', async (t) => {
  const { ledger } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  let now = 0
  let available = 100n
  const askedAt: number[] = []
  const balances = new Balances(ledger.db, { ...systemClock, monotonic: () => now }, silentLogger)
  const until = async (end: number) => {
    for (; now < end; now += 250) {
      balances.ask('acme', async () => {
        askedAt.push(now)
        return balanceOf(available)
      })
      await balances.drain()
    }
  }
  await until(20_000)
  assert.deepEqual(askedAt, [0, 500, 1_500, 3_500, 7_500, 12_500, 17_500])
  available = 200n
  await until(24_000)
  assert.deepEqual(askedAt.slice(7), [22_500, 23_000])
})
