import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepted, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { paise } from '../../domain/money.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { pauseMerchant } from '../../operators/pause.ts'
import { fence } from '../../operators/restore/restore.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import type { Claim, ClaimOptions } from './claim.ts'
import { Dispatch, type DispatchDeps, type Sender } from './dispatch.ts'
import { closed } from './merchant-gate.ts'
import { type MerchantPace, merchantsWithWork } from './sql/funds.ts'

const IN_FLIGHT = 256
const IDLE = Array.from({ length: 60 }, (_, i) => `idle${i}`)

const claimed = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Dispatch of acme, whose claims take all that they may and whose gateway never answers, beside 60 merchants whose claims take
 * nothing. `claims` are the claims made; `row` stands for a change in the row of idle0.
 */
function beside() {
  const claims: { merchantId: string; atMost: number }[] = []
  const state = { now: 0, row: 0 }
  const claim = async (_: unknown, { merchantId, atMost }: ClaimOptions): Promise<Claim> => {
    claims.push({ merchantId, atMost })
    const funds = { warmUp: 9 } as MerchantPace
    if (merchantId !== 'acme') return { wave: [], aside: [], gate: closed('rate'), funds, shortOf: null }
    const wave = Array.from({ length: atMost }, (_, i) => ({
      payout: { merchantId, payoutId: `p${claims.length}-${i}`, attempt: 1, dueAt: 0 } as Payout,
      details: {} as never,
    }))
    return {
      wave,
      aside: [],
      gate: { ...closed(null), room: atMost, spendable: paise(1) },
      funds,
      shortOf: null,
    }
  }
  const run = async () =>
    ['acme', ...IDLE].map((merchantId) => ({
      merchantId,
      rowVersion: merchantId === 'idle0' ? String(state.row) : '0',
    }))
  const sender = {
    account: {},
    leaseMs: 60_000,
    sendTimeoutMs: 1_000,
    apply: () => Promise.withResolvers().promise,
  }
  const metrics = new Metrics()
  const dispatch = new Dispatch({
    ...{
      claim,
      maySend: () => true,
      decisions: DECISIONS,
      ledger: { db: { run } },
      queryPolicies: new Map(),
    },
    senders: new Map(['acme', ...IDLE].map((merchantId) => [merchantId, sender as unknown as Sender])),
    ...{ sealing: {}, fingerprintKey: {}, owner: 'me', inFlight: IN_FLIGHT, log: silentLogger },
    clock: { now: () => state.now, monotonic: () => state.now },
    answered: metrics.counter('answers_total', 'test', ['merchant', 'answer']),
    took: metrics.seconds('took_seconds', 'test', []),
  } as unknown as DispatchDeps)
  /** Lets so much time pass, and runs turns whenever they are due. */
  const pass = async (ms: number) => {
    for (const until = state.now + ms; state.now < until; ) {
      state.now += await dispatch.turn()
      await claimed()
    }
  }
  return { claims, state, pass }
}

test('merchants that send nothing take no slot from one that sends', async () => {
  const { claims, pass } = beside()
  await pass(100)
  const taken = claims.flatMap(({ merchantId, atMost }) => (merchantId === 'acme' ? [atMost] : []))
  const others = claims.filter(({ merchantId }) => merchantId !== 'acme')
  assert.ok(others.every(({ atMost }) => atMost === 1))
  const sent = taken.reduce((all, each) => all + each, 0)
  // Slots reserved for the others stay free, and a wave begins with 16 slots.
  assert.ok(sent > IN_FLIGHT - IDLE.length - 16, `${sent} sent`)
  assert.ok(taken.length <= 6, `${taken.length} claims`)
})

test('dispatch claims ever more rarely from a merchant whose claims take nothing, and at once when its row has changed', async () => {
  const { claims, state, pass } = beside()
  const of = (merchantId: string) => claims.filter((each) => each.merchantId === merchantId).length
  await pass(3_000)
  assert.ok(of('idle1') <= 9, `${of('idle1')} claims`)
  const before = of('idle0')
  state.row++
  await pass(50)
  assert.equal(of('idle0'), before + 1)
})

test('a merchant that is paused or fenced has nothing to send', async (t) => {
  const { ledger, config } = await testLedger(t)
  const all = ['acme', 'bolt', 'curo']
  for (const merchantId of all)
    await ledger.db.run(upsertMerchant, { merchantId, settingsHash: 'h', feeEstimate: 0n })
  await accepted(
    ledger,
    config,
    all.map((merchantId) => command('p', { merchantId })),
  )
  const withWork = async () =>
    (await ledger.db.run(merchantsWithWork, {})).map(({ merchantId }) => merchantId)
  assert.deepEqual((await withWork()).toSorted(), all)
  await pauseMerchant(ledger.db, { merchantId: 'bolt', by: 'asha', reason: 'audit', feeEstimate: null })
  await fence(ledger.db, [{ merchantId: 'curo', feeEstimate: 0n }], { by: 'asha', reason: 'disk lost' })
  assert.deepEqual(await withWork(), ['acme'])
})
