import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepted, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import { anomaly, become } from '../domain/payout/transition.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { anomaliesOf } from '../queries/sql/anomalies.ts'
import { acknowledgeAnomalies } from './acknowledge.ts'
import { cancelPayouts } from './cancel-payouts.ts'
import { accept, decided, submit } from './operations.fixture.ts'
import { fence } from './recovery/recovery.ts'
import { releasePayouts } from './release-payouts.ts'
import { resolvePayout } from './resolve-payout.ts'
import { retireKeys } from './rotate-keys.ts'

const WHO = { by: 'asha', reason: 'account 50100123456789 is closed' }
const OF_ACME = { merchantId: 'acme', ...WHO }

test('payoutd records each act once, with what it changed and without bank details; it records no act that changes nothing', async (t) => {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  await accepted(ledger, config, [command('p-1')])
  await accepted(ledger, config, [command('p-2', { batchId: 'again' })], { holdDuplicates: true })
  await accepted(ledger, config, [command('p-3', { amount: paise(100n) })])
  const released = await releasePayouts(
    { ...OF_ACME, payoutIds: ['p-2'], payPeriod: 'month', known: null, shown: null },
    ledger,
  )
  assert.equal(released[0]?.kind, 'queued')
  for (let i = 0; i < 2; i++) await cancelPayouts({ ...OF_ACME, payoutIds: ['p-1', 'p-9'] }, ledger)
  await decided(ledger, 'p-3', submit)
  await decided(ledger, 'p-3', accept)
  await decided(ledger, 'p-3', (payout) => anomaly(payout, 'QUERY', 'unlisted-status', 'odd', null))
  await decided(ledger, 'p-3', (payout) => ({
    change: {
      before: payout,
      after: become(payout, 'review', { reason: 'expired' }),
      source: 'CLOCK',
      exchange: null,
    },
  }))
  const resolution = { kind: 'failed' } as const
  await resolvePayout({ merchantId: 'acme', payoutId: 'p-3', ...WHO, resolution, shown: null }, ledger)
  const anomalyIds = (await db.run(anomaliesOf, { merchantId: 'acme', limit: 9 })).map(
    (each) => each.anomalyId,
  )
  for (let i = 0; i < 2; i++) await acknowledgeAnomalies({ ...OF_ACME, anomalyIds }, db)
  await retireKeys(db, [7], WHO)
  await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)

  const acts = (await db.run(latestActs, { merchantId: 'acme', since: null, limit: 99 })).reverse()
  assert.deepEqual(
    acts.map(({ command, subjects }) => [command, ...subjects]),
    [
      ['payout release', 'p-2'],
      ['payout cancel', 'p-9'],
      ['payout cancel', 'p-1'],
      // Its command has not arrived yet, and the request now lasts longer.
      ['payout cancel', 'p-9'],
      ['payout resolve', 'p-3'],
      ['anomaly acknowledge', ...anomalyIds],
      ['keys retire', 'key 7'],
      ['recover'],
    ],
  )
  const states = (all: object | null) =>
    Object.values(all as Record<string, { state: string }>).map(({ state }) => state)
  assert.deepEqual(
    [0, 2, 4].flatMap((i) => acts[i] ?? []).map(({ before, after }) => [...states(before), ...states(after)]),
    [
      ['held', 'queued'],
      ['queued', 'cancelled'],
      ['review', 'failed'],
    ],
  )
  assert.ok(acts.every(({ by, reason }) => by === 'asha' && reason === 'account ••••6789 is closed'))
})
