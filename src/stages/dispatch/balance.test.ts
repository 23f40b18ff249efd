import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { testLedger, upsertMerchant } from '../../../test/ledger.ts'
import type { BalanceAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { Balances } from './balance.ts'

const nothing = paise(0n)
const balanceOf = (available: bigint): BalanceAnswer => ({
  ...{ kind: 'balance', busNo: null, amount: paise(available), availableAmount: paise(available) },
  ...{ frozenAmount: nothing, pendingAmount: nothing, unsettledAmount: nothing },
})

/** Balances of acme, by a clock of their own; `answer` may be changed. */
async function asking(t: TestContext, answer: BalanceAnswer) {
  const { ledger } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
  const state = { now: 0, answer, askedAt: [] as number[], lines }
  const balances = new Balances(ledger.db, { ...systemClock, monotonic: () => state.now }, log)
  const until = async (end: number) => {
    for (; state.now < end; state.now += 250) {
      balances.ask('acme', async () => {
        state.askedAt.push(state.now)
        return state.answer
      })
      await balances.drain()
    }
  }
  return { state, until }
}

const LESS_AND_LESS = [0, 500, 1_500, 3_500, 7_500, 12_500, 17_500]

test('while the balance stays the same, payoutd asks for it less often, and as often as before once it has changed', async (t) => {
  const { state, until } = await asking(t, balanceOf(100n))
  await until(20_000)
  assert.deepEqual(state.askedAt, LESS_AND_LESS)
  state.answer = balanceOf(200n)
  await until(24_000)
  assert.deepEqual(state.askedAt.slice(7), [22_500, 23_000])
  assert.deepEqual(state.lines, [])
})

test('while the gateway does not return the balance, payoutd asks less often, and says so once, and once it does', async (t) => {
  const { state, until } = await asking(t, { kind: 'unknown', reason: 'timeout', exchange: {} })
  await until(20_000)
  // The first answer has nothing to be the same as.
  assert.deepEqual(state.askedAt, LESS_AND_LESS)
  state.answer = balanceOf(200n)
  await until(24_000)
  assert.deepEqual(state.lines, [
    'the gateway did not return the balance, will query it again',
    'the gateway returns the balance again',
  ])
})
