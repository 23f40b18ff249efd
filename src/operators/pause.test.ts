import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, setBalance, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { paise } from '../domain/money.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { claim } from '../stages/dispatch/claim.ts'
import { lockFunds } from '../stages/dispatch/sql/funds.ts'
import { pauseMerchant, previewResume, resumeMerchant } from './pause.ts'

const PAUSE = { merchantId: 'acme', by: 'asha', reason: 'bank holiday', feeEstimate: paise(500n) }
const RESUME = { merchantId: 'acme', by: 'ravi', reason: 'banks are open' }

/** A merchant that may send, with one payout to send. */
async function sending(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  await accepted(ledger, config, [command('p-1')])
  const { sealing, fingerprintKey } = config
  return { ledger, keys: { sealing, fingerprintKey } }
}

const claimed = async ({ ledger, keys }: Awaited<ReturnType<typeof sending>>) => {
  const limits = { maxInFlight: 64, ratePerSecond: null }
  const options = { merchantId: 'acme', atMost: 10, owner: 'me', leaseMs: 15_000, limits }
  const { wave, gate } = await claim(ledger, { ...options, ...keys, account: ACCOUNT })
  return { count: wave.length, closed: gate.closed }
}

test('payoutd sends nothing of a paused merchant until it is resumed', async (t) => {
  const merchant = await sending(t)
  const { db } = merchant.ledger
  assert.deepEqual(await pauseMerchant(db, PAUSE), { kind: 'paused' })
  assert.deepEqual(await claimed(merchant), { count: 0, closed: 'paused' })
  const resumed = await resumeMerchant(db, RESUME)
  assert.ok(resumed.kind === 'resumed')
  assert.deepEqual([resumed.pausedBy, resumed.pausedReason], ['asha', 'bank holiday'])
  assert.deepEqual(await claimed(merchant), { count: 1, closed: null })
})

test('a second pause leaves the first one in place, with its name and reason', async (t) => {
  const { ledger } = await sending(t)
  await pauseMerchant(ledger.db, PAUSE)
  const again = await pauseMerchant(ledger.db, { ...PAUSE, by: 'ravi', reason: 'something else' })
  assert.ok(again.kind === 'already')
  assert.deepEqual([again.pausedBy, again.pausedReason], ['asha', 'bank holiday'])
})

test('a pause that the operator was not shown stays', async (t) => {
  const { ledger } = await sending(t)
  await pauseMerchant(ledger.db, PAUSE)
  const shown = await previewResume(ledger.db, RESUME)
  assert.ok(shown.kind === 'resumed')
  await resumeMerchant(ledger.db, { ...RESUME, shown })
  await pauseMerchant(ledger.db, { ...PAUSE, by: 'meera', reason: 'fraud' })
  const late = await resumeMerchant(ledger.db, { ...RESUME, shown })
  assert.deepEqual([late.kind, 'pausedBy' in late && late.pausedBy], ['moved', 'meera'])
  assert.equal((await previewResume(ledger.db, RESUME)).kind, 'resumed')
})

test('resuming a merchant that is not paused changes nothing and says so', async (t) => {
  const { ledger } = await sending(t)
  assert.deepEqual(await resumeMerchant(ledger.db, RESUME), { kind: 'not-paused' })
})

test('a merchant in the settings can be paused before its first send, and starts with its canary and fee', async (t) => {
  const { ledger } = await testLedger(t)
  assert.deepEqual(await pauseMerchant(ledger.db, PAUSE), { kind: 'paused' })
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 500n })
  const [funds] = await ledger.db.run(lockFunds, { merchantId: 'acme' })
  assert.deepEqual(
    [funds?.pausedReason, funds?.warmUp, funds?.available, funds?.feeEstimate],
    ['bank holiday', 0, null, 500n],
  )
})

test('an unknown merchant cannot be paused by mistake', async (t) => {
  const { ledger } = await testLedger(t)
  const outcome = await pauseMerchant(ledger.db, { ...PAUSE, merchantId: 'amce', feeEstimate: null })
  assert.deepEqual(outcome, { kind: 'unknown' })
  assert.deepEqual(await resumeMerchant(ledger.db, { ...RESUME, merchantId: 'amce' }), { kind: 'unknown' })
})

test('payoutd records who paused, and who resumed which pause; it records nothing that changed nothing', async (t) => {
  const { ledger } = await sending(t)
  await resumeMerchant(ledger.db, RESUME)
  await pauseMerchant(ledger.db, PAUSE)
  await pauseMerchant(ledger.db, { ...PAUSE, by: 'meera' })
  await resumeMerchant(ledger.db, RESUME)
  const acts = await ledger.db.run(latestActs, { merchantId: 'acme', since: null, limit: 10 })
  assert.deepEqual(
    acts.map(({ command, by, reason }) => [command, by, reason]),
    [
      ['resume', 'ravi', 'banks are open'],
      ['pause', 'asha', 'bank holiday'],
    ],
  )
  assert.deepEqual(acts[0]?.before, { ...(acts[0]?.before ?? {}), pausedBy: 'asha' })
  assert.ok(acts.every(({ osUser, host, databaseRole }) => osUser && host && databaseRole))
  const since = (acts[0]?.at ?? 0) + 1
  assert.deepEqual(await ledger.db.run(latestActs, { merchantId: null, since, limit: 10 }), [])
})
