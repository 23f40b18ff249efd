import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accepted, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { pauseMerchant } from '../../operators/pause.ts'
import { fence } from '../../operators/recovery/recovery.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { eventually } from '../../platform/running/eventually.fixture.ts'
import type { Claim, ClaimOptions } from './claim.ts'
import { Dispatch, type DispatchDeps, type Sender } from './dispatch.ts'
import { closed } from './merchant-gate.ts'
import { type MerchantPace, merchantsWithWork } from './sql/funds.ts'

const IN_FLIGHT = 256

const claimed = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Dispatch of acme, whose claims take all that they may and whose gateway never answers, beside others, idle0 and so on, whose claims take
 * nothing. `claims` are the claims made; `row` stands for a change in the row of idle0; `isSlow` makes their claims last for ever;
 * `isOutdated` means that other settings of the others are in force; `isAway` means that acme has nothing to send; with `allSend` the others' claims take all that they may, too.
 */
function beside(others = 60) {
  const idle = Array.from({ length: others }, (_, i) => `idle${i}`)
  const claims: { merchantId: string; atMost: number }[] = []
  const state = { now: 0, row: 0, isSlow: false, isAway: false, allSend: false, isOutdated: false }
  let answer = Promise.withResolvers<ApplyAnswer>()
  const answerAll = () => {
    answer.resolve({ kind: 'not-sent', reason: 'refused', exchange: {} })
    answer = Promise.withResolvers()
  }
  const claim = async (_: unknown, { merchantId, atMost }: ClaimOptions): Promise<Claim> => {
    claims.push({ merchantId, atMost })
    const funds = { warmUp: 9, feeEstimate: paise(0), feeShare: null } as MerchantPace
    if (merchantId !== 'acme' && state.isSlow) return Promise.withResolvers<Claim>().promise
    if (merchantId !== 'acme' && !state.allSend)
      return {
        ...{ wave: [], aside: [], funds, shortOf: null },
        gate: closed(state.isOutdated ? 'other-settings' : 'balance-unknown'),
      }
    const wave = Array.from({ length: atMost }, (_, i) => ({
      payout: { merchantId, payoutId: `p${claims.length}-${i}`, attempt: 1, dueAt: 0 } as Payout,
      details: {} as never,
    }))
    return {
      wave,
      aside: [],
      gate: { ...closed(null), room: atMost },
      funds,
      shortOf: null,
    }
  }
  const run = async () =>
    (state.isAway ? idle : ['acme', ...idle]).map((merchantId) => ({
      merchantId,
      rowVersion: merchantId === 'idle0' ? String(state.row) : '0',
    }))
  const sender = {
    account: {},
    leaseMs: 60_000,
    sendTimeoutMs: 1_000,
    apply: () => answer.promise,
  }
  const metrics = new Metrics()
  const dispatch = new Dispatch({
    ...{
      claim,
      maySend: () => true,
      decisions: DECISIONS,
      ledger: { db: { run, transaction: async () => ({ losses: new Map(), decisions: [] }) } },
      queryPolicies: new Map(),
    },
    senders: new Map(['acme', ...idle].map((merchantId) => [merchantId, sender as unknown as Sender])),
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
  const sent = () =>
    claims.reduce((all, { merchantId, atMost }) => (merchantId === 'acme' ? all + atMost : all), 0)
  return { claims, state, pass, sent, answerAll, dispatch }
}

test('merchants that send nothing take no slot from one that sends', async () => {
  const others = 60
  const { claims, pass, sent } = beside(others)
  await pass(100)
  const ofIdle = claims.filter(({ merchantId }) => merchantId === 'idle7').map(({ atMost }) => atMost)
  assert.ok(ofIdle.length > 1 && ofIdle.slice(1).every((atMost) => atMost === 1), `${ofIdle}`)
  // Slots reserved for the others stay free, and a wave begins with 16 slots.
  assert.ok(sent() > IN_FLIGHT - others - 16, `${sent()} sent`)
  const its = claims.filter(({ merchantId }) => merchantId === 'acme')
  assert.ok(its.length <= 6, `${its.length} claims`)
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

test('merchants whose claims take nothing keep no claim and no slot from another, however many they are and however long their claims last', async () => {
  const { state, pass, sent } = beside(300)
  state.isAway = true
  await pass(10)
  state.isSlow = true
  await pass(1_000)
  state.isAway = false
  await pass(100)
  assert.ok(sent() > IN_FLIGHT - 32, `${sent()} sent`)
})

test('of many merchants with payouts to send, some send several at a time, and then others do', async () => {
  const { claims, state, pass, answerAll } = beside(300)
  state.allSend = true
  await pass(400)
  const first = new Set(claims.map(({ merchantId }) => merchantId))
  answerAll()
  const next = () => claims.slice(first.size).filter(({ atMost }) => atMost === 8)
  await eventually('the next claims', async () => {
    await pass(2)
    return next().length >= 24
  })
  assert.ok(next().every(({ merchantId }) => !first.has(merchantId)))
})

test('while some keep nearly all slots, sixteen others at a time make one call each, and hanging ones keep nobody waiting', async () => {
  const { claims, state, pass } = beside(300)
  state.allSend = true
  await pass(200)
  const singles = () => claims.filter(({ atMost }) => atMost === 1)
  assert.equal(singles().length, 16)
  await pass(300 * 16)
  assert.equal(singles().length, 301 - 32)
  assert.equal(new Set(claims.map(({ merchantId }) => merchantId)).size, claims.length)
  assert.ok(claims.filter(({ atMost }) => atMost === 8).length >= 31)
})

test('at a stop, claims that wait for their turn are not made any more', async () => {
  const { claims, state, dispatch } = beside(300)
  state.allSend = true
  await dispatch.turn()
  void dispatch.drain(new AbortController().signal)
  for (let i = 0; i < 100; i++) await claimed()
  assert.ok(claims.length < 10, `${claims.length} claims`)
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

test('a process names the merchants for which it has outdated settings, until they are in force again', async () => {
  const { state, pass, dispatch } = beside(2)
  await pass(100)
  assert.deepEqual([...dispatch.outdated], [])
  state.isOutdated = true
  await pass(3_000)
  assert.deepEqual([...dispatch.outdated].sort(), ['idle0', 'idle1'])
  state.isOutdated = false
  await pass(3_000)
  assert.deepEqual([...dispatch.outdated], [])
})
