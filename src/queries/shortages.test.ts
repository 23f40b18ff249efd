import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, accepted, setBalance, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { checkShortages } from '../doctor/stopped-sending.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { claim } from '../stages/dispatch/claim.ts'
import { WARM } from '../stages/dispatch/merchant-gate.ts'
import { storyText } from '../views/story-text.ts'
import { ledgerMetrics } from './ledger-metrics.ts'
import { tellPayout } from './payout-story.ts'
import { shortages } from './sql/shortages.ts'

const fullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const paused = sql<object>`update merchants set paused_at = now(), paused_by = 'asha', paused_reason = 'audit'`
const resumed = sql<object>`update merchants set paused_at = null, paused_by = null, paused_reason = null`

test('a payout that the balance does not cover is reported, with what waits behind it, until it is covered', async (t) => {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  const merchantId = 'acme'
  await db.run(upsertMerchant, { merchantId, settingsHash: 'h', feeEstimate: 500n })
  await db.run(fullSpeed, { warmUp: WARM })
  const hasBalance = async (available: bigint) => {
    await setBalance(db, merchantId, available)
  }
  const limits = { maxInFlight: 64, ratePerSecond: null }
  const claimNext = () =>
    claim(ledger, {
      merchantId,
      atMost: 64,
      owner: 'me',
      leaseMs: 60_000,
      limits,
      sealing: config.sealing,
      fingerprintKey: config.fingerprintKey,
      account: ACCOUNT,
    })
  const doctor = async () => checkShortages(await db.run(shortages, { merchantId: null, countUpTo: 100 }))
  const shown = async (payoutId: string) =>
    storyText(await tellPayout(db, { merchantId, payoutId }, config.sealing))
  const metrics = new Metrics()
  ledgerMetrics(metrics, db)

  await accepted(ledger, config, [
    command('large', { amount: paise(100_000n) }),
    command('small', { amount: paise(10_000n) }),
  ])
  await hasBalance(50_000n)
  assert.equal((await claimNext()).wave.length, 0)

  const LACK = /acme lacks ₹505\.00 for its payout large since \d{4}-\S+ \S+Z, and 1 waits behind it/
  const warned = await doctor()
  assert.equal(warned.state, 'warning')
  assert.match(warned.what, LACK)
  assert.match(await shown('large'), LACK)
  assert.match(await shown('small'), LACK)
  const scraped = await metrics.registry.metrics()
  assert.match(scraped, /payoutd_merchant_balance_short_paise\{merchant="acme"\} 50500/)
  assert.match(scraped, /payoutd_merchant_balance_short_payouts\{merchant="acme"\} 2/)

  await accepted(ledger, config, [command('lost', { amount: paise(10_000n), priority: 9 })])
  assert.equal((await claimNext()).wave.length, 1)
  assert.match(
    (await doctor()).what,
    /acme lacks ₹610\.00 for its payout large .* \(₹105\.00 is kept for payouts whose result is not known yet\)$/,
  )
  await db.run(paused, {})
  assert.equal(
    (await doctor()).state,
    'good',
    'nothing is asked about the balance of a merchant that is paused',
  )
  await db.run(resumed, {})

  await hasBalance(200_000n)
  assert.equal((await claimNext()).wave.length, 2)
  assert.equal((await doctor()).state, 'good')
  assert.doesNotMatch(await shown('large'), /lacks/)
  assert.match(await metrics.registry.metrics(), /payoutd_merchant_balance_short_paise\{merchant="acme"\} 0/)
})
