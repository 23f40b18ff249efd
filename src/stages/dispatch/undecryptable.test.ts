import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import {
  ACCOUNT,
  accepted,
  brokenVersions,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
} from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { paise } from '../../domain/money.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { silentLogger } from '../../platform/log.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import type { SealingKeys } from '../../platform/seal.ts'
import { claim } from './claim.ts'
import { KeyTrial } from './undecryptable.ts'

const funds = sql<object, { claimedTotal: bigint; consecutiveFailures: number; circuitOpened: number }>`
  select claimed_total, consecutive_failures, circuit_opened from merchants`
const deadlines = sql<object, { same: boolean }>`
  select bool_and(due_at = deadline) as same from payouts where state in ('held', 'queued')`

/** A merchant at its canary: `sealed` payouts of ₹100 under a key that its processes lack, then two others. */
async function behindSealed(t: TestContext, sealed: number) {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  const both: SealingKeys = {
    current: 2,
    keys: new Map([...config.sealing.keys, [2, createSecretKey(randomBytes(32))]]),
  }
  const amount = paise(10_000n)
  const ids = Array.from({ length: sealed }, (_, i) => `sealed-${i}`)
  await accepted(
    ledger,
    { ...config, sealing: both },
    ids.map((id) => command(id, { amount })),
  )
  await accepted(ledger, config, [command('well-1', { amount }), command('well-2', { amount })])
  const claimWith = (sealing: SealingKeys) =>
    claim(ledger, {
      merchantId: 'acme',
      atMost: 64,
      owner: 'me',
      leaseMs: 15_000,
      limits: { maxInFlight: 64, ratePerSecond: null },
      sealing,
      fingerprintKey: config.fingerprintKey,
      account: ACCOUNT,
    })
  return { ledger, claimWith, lacking: config.sealing, both }
}

test('payouts that no key opens are put aside unsent, and the canary behind them leaves', async (t) => {
  const { ledger, claimWith, lacking } = await behindSealed(t, 3)
  const { wave, aside } = await claimWith(lacking)
  assert.deepEqual(
    wave.map(({ payout, details }) => [payout.payoutId, details.accountNo]),
    [['well-1', '50100123456789']],
  )
  assert.deepEqual(
    aside.map(({ payout, ...why }) => [payout.payoutId, why]),
    [
      ['sealed-0', { why: 'details-sealed', keyId: 2 }],
      ['sealed-1', { why: 'details-sealed', keyId: 2 }],
      ['sealed-2', { why: 'details-sealed', keyId: 2 }],
    ],
  )
  const stored = (await payoutsOf(ledger)).map(({ payoutId, state, reason, attempt }) => [
    payoutId,
    state,
    reason,
    attempt,
  ])
  assert.deepEqual(stored, [
    ['sealed-0', 'held', 'details-sealed', 0],
    ['sealed-1', 'held', 'details-sealed', 0],
    ['sealed-2', 'held', 'details-sealed', 0],
    ['well-1', 'submitting', null, 1],
    ['well-2', 'queued', null, 0],
  ])
  assert.deepEqual(await ledger.db.run(funds, {}), [
    { claimedTotal: 10_000n, consecutiveFailures: 0, circuitOpened: 0 },
  ])
  assert.deepEqual(await ledger.db.run(deadlines, {}), [{ same: true }])
  assert.deepEqual(await brokenVersions(ledger), [])
})

/** Tries the keys to the end, as a process does that has started. Returns its log. */
async function tryKeys(ledger: Ledger, sealing: SealingKeys): Promise<string[]> {
  const lines: string[] = []
  const trial = new KeyTrial(
    ledger,
    sealing,
    pino({ base: null }, { write: (line: string) => void lines.push(line) }),
  )
  while ((await trial.turn(() => undefined)) === 0);
  return lines
}

test('payouts that were put aside are sent once payoutd has started with the key', async (t) => {
  const { ledger, claimWith, lacking, both } = await behindSealed(t, 3)
  await claimWith(lacking)
  await tryKeys(ledger, lacking)
  const stays = (await payoutsOf(ledger)).filter(({ state, version }) => state === 'held' && version === 2)
  assert.equal(stays.length, 3)
  await tryKeys(ledger, both)
  await tryKeys(ledger, both)
  const released = (await payoutsOf(ledger)).filter(({ payoutId }) => payoutId.startsWith('sealed'))
  assert.deepEqual(
    released.map(({ state, reason, ready, version }) => [state, reason, ready, version]),
    Array.from({ length: 3 }, () => ['queued', null, true, 3]),
  )
  await ledger.db.run(atFullSpeed, {})
  const { wave, aside } = await claimWith(both)
  assert.deepEqual(
    wave.map(({ payout }) => payout.payoutId),
    ['sealed-0', 'sealed-1', 'sealed-2', 'well-2'],
  )
  assert.deepEqual(aside, [])
  assert.deepEqual(await brokenVersions(ledger), [])
})

test('more than one batch of them is queued again, each payout once', async (t) => {
  const { ledger, claimWith, lacking, both } = await behindSealed(t, 1_010)
  for (let left = 1_010; left > 0; ) left -= (await claimWith(lacking)).aside.length
  await tryKeys(ledger, both)
  const released = (await payoutsOf(ledger)).filter(({ payoutId }) => payoutId.startsWith('sealed'))
  assert.deepEqual(
    [released.length, ...new Set(released.map(({ state, version }) => `${state} at version ${version}`))],
    [1_010, 'queued at version 3'],
  )
  assert.deepEqual(await brokenVersions(ledger), [])
})

const ofBolt = sql<object>`update payouts set merchant_id = 'bolt' where payout_id = 'sealed-2'`
const atFullSpeed = sql<object>`update merchants set warm_up = 9`
const refusesFirst = sql<object>`
  alter table payouts add constraint odd check (payout_id <> 'sealed-0' or state <> 'queued')`

test('if the database refuses one of them, or one does not open, it holds up no other', async (t) => {
  const { ledger, claimWith, lacking, both } = await behindSealed(t, 3)
  await claimWith(lacking)
  await ledger.db.run(ofBolt, {})
  await ledger.db.run(refusesFirst, {})
  assert.match((await tryKeys(ledger, both)).join(), /odd/)
  const sealed = (await payoutsOf(ledger)).filter(({ payoutId }) => payoutId.startsWith('sealed'))
  assert.deepEqual(
    sealed.map(({ state }) => state),
    ['held', 'queued', 'held'],
  )
})

const shutsDown = sql<object>`do $$ begin raise sqlstate '57P01'; end $$`

test('payoutd tries again what failed in the database, and what a process without the key puts aside later', async (t) => {
  const { ledger, claimWith, lacking, both } = await behindSealed(t, 3)
  await claimWith(lacking)
  let isDown = true
  const transaction: Ledger['db']['transaction'] = (name, work) =>
    isDown
      ? ledger.db.transaction(name, (tx) => tx.run(shutsDown, {}) as never)
      : ledger.db.transaction(name, work)
  const trial = new KeyTrial({ ...ledger, db: { ...ledger.db, transaction } }, both, silentLogger)
  const states = async () => (await payoutsOf(ledger)).slice(0, 3).map(({ state }) => state)
  assert.equal(await trial.turn(() => undefined), 60_000)
  assert.deepEqual(await states(), ['held', 'held', 'held'])
  isDown = false
  assert.equal(await trial.turn(() => undefined), 60_000)
  assert.deepEqual(await states(), ['queued', 'queued', 'queued'])
  await ledger.db.run(atFullSpeed, {})
  await claimWith(lacking)
  assert.deepEqual(await states(), ['held', 'held', 'held'])
  assert.equal(await trial.turn(() => undefined), 60_000)
  assert.deepEqual(await states(), ['queued', 'queued', 'queued'])
})
