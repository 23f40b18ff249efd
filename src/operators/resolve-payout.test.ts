import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  ACCOUNT,
  accepted,
  brokenVersions,
  NO_PROMISES,
  oneWaits,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
  within,
} from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import type { Config } from '../config/config.ts'
import { command } from '../domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../domain/commands/command.ts'
import { words } from '../domain/mask.ts'
import { paise } from '../domain/money.ts'
import { applyEvidence } from '../domain/payout/apply-evidence.ts'
import { cancel } from '../domain/payout/cancel.ts'
import { shown } from '../domain/payout/order-shown.ts'
import { QUERY_POLICY } from '../domain/payout/payout.fixture.ts'
import type { Resolution } from '../domain/payout/resolve.ts'
import { anomaly, become } from '../domain/payout/transition.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { eventually } from '../platform/running/eventually.fixture.ts'
import { tellPayout } from '../queries/payout-story.ts'
import { claim } from '../stages/dispatch/claim.ts'
import { WARM } from '../stages/dispatch/merchant-gate.ts'
import { cancelPayouts } from './cancel-payouts.ts'
import { decided, submit } from './operations.fixture.ts'
import { releasePayouts } from './release-payouts.ts'
import { previewResolve, resolvePayout } from './resolve-payout.ts'

const KEY = { merchantId: 'acme', payoutId: 'p-1' }
const DECIDED = { ...KEY, by: 'asha', reason: 'the bank says so', shown: null }
const PAID: Resolution = { kind: 'paid', utr: '632611200001' }
const resend = (confirmedAbsentBy: string | null): Resolution => ({
  kind: 'resend',
  attempt: 1,
  cancelRequest: null,
  confirmedAbsentBy,
  deadline: null,
  terms: {
    ...ACCOUNT,
    ...NO_PROMISES,
    duplicatesRefused: confirmedAbsentBy === null,
    deadlineMs: 7_200_000,
  },
})
const published = sql<{ topic: string }, { value: Buffer }>`
  select value from ${outboxMessages} where topic = ${'topic'} order by position, n`
const endDeadline = sql<object>`update payouts set deadline = now() - interval '1 hour'`
const giveUtr = sql<{ payoutId: string; utr: string | null }>`
  update payouts set utr = ${'utr'} where payout_id = ${'payoutId'}`
const cancelRequests = sql<object, { state: string; cancelRequest: string | null }>`
  select state, cancel_request from payouts`
const fullSpeed = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`

/** What dispatch would send now. */
async function sendable(ledger: Ledger, config: Config) {
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await setBalance(ledger.db, 'acme', 10n ** 12n)
  await ledger.db.run(fullSpeed, { warmUp: WARM })
  const { wave } = await claim(ledger, {
    merchantId: 'acme',
    atMost: 10,
    owner: 'me',
    leaseMs: 60_000,
    limits: { maxInFlight: 10, ratePerSecond: null },
    sealing: config.sealing,
    fingerprintKey: config.fingerprintKey,
    account: ACCOUNT,
  })
  return wave
}

/** `p-1` was sent once, its outcome is unknown, and a person has to decide. */
async function inReview(t: TestContext, fields: Partial<PayoutCommand> = {}) {
  const opened = await testLedger(t)
  await opened.ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await accepted(opened.ledger, opened.config, [command('p-1', fields)])
  await decided(opened.ledger, 'p-1', submit)
  for (const state of ['unknown', 'review'] as const) {
    await decided(opened.ledger, 'p-1', (before) => ({
      change: { before, after: become(before, state, {}), source: 'CLOCK', exchange: null },
    }))
  }
  return opened
}

test("a person's decision ends the payout, is published as its result, and its history shows who decided and why", async (t) => {
  for (const [resolution, state, rules] of [
    [PAID, 'paid', []],
    [{ kind: 'failed' }, 'failed', [['OPERATOR', 'the bank says so']]],
  ] as const) {
    const { ledger, config, codec } = await inReview(t)
    const outcome = await resolvePayout({ ...DECIDED, resolution }, ledger)
    assert.equal(outcome.kind, 'resolved')
    assert.equal((await payoutsOf(ledger))[0]?.state, state)
    const [result, ...others] = await ledger.db.run(published, { topic: ledger.topics.results })
    assert.equal(others.length, 0)
    const decoded = await codec.decode(result?.value ?? null)
    assert.ok(decoded.kind === 'decoded')
    const { status, evidence, errors } = decoded.value as {
      status: string
      evidence: string
      errors: { rule: string; message: string }[]
    }
    assert.deepEqual([status, evidence], [state.toUpperCase(), 'OPERATOR'])
    assert.deepEqual(
      errors.map(({ rule, message }) => [rule, message]),
      rules,
    )
    const { history } = await tellPayout(ledger.db, KEY, config.sealing)
    const last = history.at(-1)
    assert.deepEqual([last?.source, last?.toState], ['OPERATOR', state])
    assert.match(last?.exchange?.note ?? '', /^asha: the bank says so \(/)
    assert.deepEqual(await brokenVersions(ledger), [])
  }
})

test('a payout that is sent again is claimed under the same order number, as its next attempt', async (t) => {
  const { ledger, config } = await inReview(t)
  await ledger.db.run(endDeadline, {})
  await resolvePayout({ ...DECIDED, resolution: resend(null) }, ledger)
  const [before] = await payoutsOf(ledger)
  assert.deepEqual(
    (await sendable(ledger, config)).map(({ payout }) => [payout.orderNo, payout.attempt]),
    [[before?.orderNo, 2]],
  )
})

const schedule = sql<{ notBefore: number }>`
  update payout_commands set not_before = to_timestamp(${'notBefore'}::float8 / 1000)`
const isReady = sql<object>`update payouts set ready = true`

test('a resend of a payout whose time is in the future waits for that time, whatever makes it ready', async (t) => {
  const { ledger, config } = await inReview(t)
  const notBefore = Date.now() + 2 * 3_600_000
  await ledger.db.run(schedule, { notBefore })
  await ledger.db.run(endDeadline, {})
  const outcome = await resolvePayout({ ...DECIDED, resolution: resend(null) }, ledger)
  assert.ok(outcome.kind === 'resolved')
  const { state, ready, dueAt, deadline } = outcome.payout
  assert.deepEqual([state, ready, dueAt, deadline], ['queued', false, notBefore, notBefore + 7_200_000])
  await ledger.db.run(isReady, {})
  assert.deepEqual(await sendable(ledger, config), [])
  await ledger.db.run(schedule, { notBefore: Date.now() - 1 })
  assert.equal((await sendable(ledger, config)).length, 1)
})

test('nor does it get a deadline before that time', async (t) => {
  const { ledger } = await inReview(t)
  const notBefore = Date.now() + 2 * 3_600_000
  await ledger.db.run(schedule, { notBefore })
  const early = { ...resend(null), deadline: notBefore - 1 } as Resolution
  const outcome = await resolvePayout({ ...DECIDED, resolution: early }, ledger)
  assert.equal(outcome.kind === 'refused' && outcome.refusal.kind, 'deadline-over')
})

test('the history and the record of the act show who confirmed that the gateway has no such order', async (t) => {
  const { ledger, config } = await inReview(t)
  const unconfirmed: Resolution = {
    kind: 'resend',
    attempt: 1,
    cancelRequest: null,
    confirmedAbsentBy: null,
    deadline: null,
    terms: { ...ACCOUNT, ...NO_PROMISES, deadlineMs: 7_200_000 },
  }
  assert.deepEqual(await resolvePayout({ ...DECIDED, resolution: unconfirmed }, ledger), {
    kind: 'refused',
    refusal: { kind: 'duplicates-not-refused' },
    contradictedBy: [],
  })
  assert.equal((await payoutsOf(ledger))[0]?.state, 'review')
  await resolvePayout({ ...DECIDED, resolution: resend('R. Iyer') }, ledger)
  const { history } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.match(history.at(-1)?.exchange?.note ?? '', /R. Iyer confirmed that the gateway has no such order/)
  const [act] = await ledger.db.run(latestActs, { merchantId: 'acme', since: null, limit: 1 })
  assert.match(JSON.stringify(act?.after), /"confirmedAbsentBy":"R. Iyer"/)
})

test('of two people who decide at the same moment, one succeeds, and the other sees the result', async (t) => {
  const { ledger } = await inReview(t)
  const both = await Promise.all([
    resolvePayout({ ...DECIDED, resolution: PAID }, ledger),
    resolvePayout({ ...DECIDED, by: 'meera', resolution: { kind: 'failed' } }, ledger),
  ])
  const [payout] = await payoutsOf(ledger)
  assert.deepEqual(both.map(({ kind }) => kind).sort(), ['refused', 'resolved'])
  assert.deepEqual(
    both.find(({ kind }) => kind === 'refused'),
    { kind: 'refused', refusal: { kind: 'not-in-review', state: payout?.state }, contradictedBy: [] },
  )
  assert.equal((await ledger.db.run(published, { topic: ledger.topics.results })).length, 1)
})

test('a resend that was shown before a request to cancel arrived is not carried out, and the request stays', async (t) => {
  const { ledger } = await inReview(t)
  const request = { ...DECIDED, resolution: resend('R. Iyer') }
  const would = await previewResolve(request, ledger.db)
  assert.ok(would.kind === 'resolved')
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p-1'], by: 'hr', reason: 'left' }, ledger)
  const outcome = await resolvePayout({ ...request, shown: would.shown }, ledger)
  assert.equal(outcome.kind === 'refused' && outcome.refusal.kind, 'moved')
  const [payout] = await ledger.db.run(cancelRequests, {})
  assert.deepEqual(payout, { state: 'review', cancelRequest: 'hr: left' })
})

for (const resolution of [PAID, { kind: 'failed' } as const, resend('R. Iyer')])
  test(`${resolution.kind} that was shown before more was reported about the payout is not carried out, though nothing moved`, async (t) => {
    const { ledger } = await inReview(t)
    const say = (detail: string) =>
      decided(ledger, 'p-1', (payout) => anomaly(payout, 'CALLBACK', 'amount-mismatch', detail, {}))
    await say('200')
    const request = { ...DECIDED, resolution }
    const would = await previewResolve(request, ledger.db)
    assert.ok(would.kind === 'resolved')
    await say('300')
    const outcome = await resolvePayout({ ...request, shown: would.shown }, ledger)
    assert.equal(outcome.kind === 'refused' && outcome.refusal.kind, 'moved')
    const again = await previewResolve(request, ledger.db)
    assert.ok(again.kind === 'resolved')
    // Whoever has a callback of the order can repeat it as often as they like.
    await say('300')
    assert.equal((await resolvePayout({ ...request, shown: again.shown }, ledger)).kind, 'resolved')
  })

test('a payment that a person found by its UTR has nothing of the order that is known where there may be another', async (t) => {
  const { ledger } = await inReview(t)
  const known = { agentpayOrderId: 'AP2', fee: paise(500n), doubted: true }
  for (const [utr, of] of [
    [null, [null, null]],
    ['632611200001', ['AP2', 500n]],
  ] as const) {
    await decided(ledger, 'p-1', (before) => ({
      change: { before, after: { ...before, ...known, utr }, source: 'QUERY', exchange: null },
    }))
    const would = await previewResolve({ ...DECIDED, resolution: PAID }, ledger.db)
    assert.ok(would.kind === 'resolved')
    const { agentpayOrderId, fee } = would.payout
    assert.deepEqual([agentpayOrderId, fee], of)
  }
})

test('a resend that was shown of one attempt is not carried out of the next, nor is the same command once more', async (t) => {
  const { ledger } = await inReview(t)
  const request = { ...DECIDED, resolution: resend('R. Iyer') }
  const would = await previewResolve(request, ledger.db)
  assert.ok(would.kind === 'resolved')
  assert.equal((await resolvePayout({ ...request, by: 'meera' }, ledger)).kind, 'resolved')
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', (before) => ({
    change: { before, after: become(before, 'review', {}), source: 'CLOCK', exchange: null },
  }))
  for (const [shown, refusal] of [
    [would.shown, 'moved'],
    [null, 'other-attempt'],
  ] as const) {
    const outcome = await resolvePayout({ ...request, shown }, ledger)
    assert.equal(outcome.kind === 'refused' && outcome.refusal.kind, refusal)
  }
})

test('a resend that is repeated unseen is not carried out once the payout has come back, though no attempt was made since', async (t) => {
  const { ledger, config } = await inReview(t)
  const request = { ...DECIDED, resolution: resend('R. Iyer') }
  assert.equal((await resolvePayout(request, ledger)).kind, 'resolved')
  await decided(ledger, 'p-1', (before) => ({
    change: { before, after: shown(before), source: 'CALLBACK', exchange: null },
  }))
  const repeated = await resolvePayout(request, ledger)
  assert.equal(repeated.kind === 'refused' && repeated.refusal.kind, 'resent-before')
  assert.deepEqual(await sendable(ledger, config), [])
  const would = await previewResolve(request, ledger.db)
  assert.ok(would.kind === 'resolved')
  assert.equal((await resolvePayout({ ...request, shown: would.shown }, ledger)).kind, 'resolved')
})

test('of two payouts that are called paid with one UTR at the same moment, one is, and the error names it for the other', async (t) => {
  const { ledger, config } = await inReview(t)
  await accepted(ledger, config, [command('p-2')])
  await decided(ledger, 'p-2', (before) => ({
    change: { before, after: become(before, 'review', {}), source: 'CLOCK', exchange: null },
  }))
  let second: ReturnType<typeof resolvePayout> | undefined
  await ledger.db.transaction('test', async (tx) => {
    await resolvePayout({ ...DECIDED, resolution: PAID }, within(ledger, tx))
    second = resolvePayout({ ...DECIDED, payoutId: 'p-2', resolution: PAID }, ledger)
    await eventually('the second waits', () => oneWaits(ledger))
  })
  assert.equal((await second)?.kind, 'utr-taken')
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state }) => state),
    ['paid', 'review'],
  )
})

test('a preview shows what would happen, and changes nothing', async (t) => {
  const { ledger } = await inReview(t)
  const outcome = await previewResolve({ ...DECIDED, resolution: PAID }, ledger.db)
  assert.equal(outcome.kind === 'resolved' && outcome.payout.state, 'paid')
  const [payout] = await payoutsOf(ledger)
  assert.deepEqual([payout?.state, payout?.version], ['review', 4])
  assert.deepEqual(await previewResolve({ ...DECIDED, payoutId: 'p-9', resolution: PAID }, ledger.db), {
    kind: 'unknown',
  })
})

test('good evidence from the gateway still settles a payout in review, and then there is nothing left to decide', async (t) => {
  const { ledger } = await inReview(t)
  await decided(ledger, 'p-1', (payout, now) =>
    applyEvidence(
      payout,
      {
        mchOrderNo: payout.orderNo ?? '',
        agentpayOrderId: 'AP1',
        status: 'success',
        amount: payout.amount,
        fee: null,
        utr: '632611200001',
        errorMessage: null,
        exchange: {},
      },
      'CALLBACK',
      { ...QUERY_POLICY, graceMs: 1_000 },
      now,
    ),
  )
  assert.deepEqual(await resolvePayout({ ...DECIDED, resolution: { kind: 'failed' } }, ledger), {
    kind: 'refused',
    refusal: { kind: 'not-in-review', state: 'paid' },
    contradictedBy: [],
  })
})

test("a UTR that another payout has is refused, and the error names that payout; the payout's own UTR is accepted", async (t) => {
  const { ledger, config } = await inReview(t)
  await accepted(ledger, config, [command('other', { merchantId: 'bolt' })])
  const utr = 'SBIN526112200001'
  await ledger.db.run(giveUtr, { payoutId: 'other', utr })
  const request = { ...DECIDED, resolution: { kind: 'paid', utr: utr.toLowerCase() } as const }
  const taken = {
    kind: 'utr-taken',
    utr: utr.toLowerCase(),
    takenBy: { merchantId: 'bolt', payoutId: 'other' },
  }
  assert.deepEqual(await previewResolve(request, ledger.db), taken)
  assert.deepEqual(await resolvePayout(request, ledger), taken)
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state }) => state),
    ['queued', 'review'],
  )
  await ledger.db.run(giveUtr, { payoutId: 'other', utr: null })
  await ledger.db.run(giveUtr, { payoutId: 'p-1', utr })
  assert.equal((await resolvePayout(request, ledger)).kind, 'resolved')
})

test('a resend names what else pays the same by now, and happens only as it was shown', async (t) => {
  const { ledger, config } = await inReview(t)
  await accepted(ledger, config, [command('again-1', { batchId: 'november-2' })], { holdDuplicates: true })
  const lookForOthers = { payPeriod: 'month', known: null } as const
  const request = { ...DECIDED, resolution: resend('R. Iyer'), lookForOthers }
  const before = await previewResolve(request, ledger.db)
  assert.ok(before.kind === 'resolved')
  const named = before.shown.otherPayments.found.map(({ payoutId, state }) => [payoutId, state])
  assert.deepEqual(named, [['again-1', 'held']])
  const release = {
    merchantId: 'acme',
    payoutIds: ['again-1'],
    by: 'asha',
    reason: 'p-1 is stuck',
    shown: null,
  }
  assert.equal((await releasePayouts({ ...release, ...lookForOthers }, ledger))[0]?.kind, 'queued')
  const moved = await resolvePayout({ ...request, shown: before.shown }, ledger)
  assert.equal(moved.kind === 'refused' && moved.refusal.kind, 'moved')
  const unseen = await resolvePayout({ ...request, lookForOthers: { ...lookForOthers, known: [] } }, ledger)
  assert.ok(unseen.kind === 'unseen')
  assert.equal(unseen.otherPayments.found[0]?.state, 'queued')
  const known = await resolvePayout(
    { ...request, lookForOthers: { ...lookForOthers, known: ['again-1'] } },
    ledger,
  )
  assert.equal(known.kind, 'resolved')
})

test('a resend names what the same beneficiaryId is paid under other bank details', async (t) => {
  const { ledger, config } = await inReview(t, { beneficiaryId: 'E-17' })
  const corrected = { beneficiaryId: 'E-17', accountNo: '50100222222222', batchId: 'november-2' }
  await accepted(ledger, config, [command('corrected', corrected)])
  const lookForOthers = { payPeriod: 'month', known: [] } as const
  const request = { ...DECIDED, resolution: resend('R. Iyer'), lookForOthers }
  const unseen = await resolvePayout(request, ledger)
  assert.ok(unseen.kind === 'unseen')
  assert.deepEqual(
    unseen.otherPayments.found.map(({ payoutId, toOtherDetails }) => [payoutId, toOtherDetails]),
    [['corrected', true]],
  )
})

test('a resend says that payoutd did not look at all that pays the same, and is not carried out unseen', async (t) => {
  const { ledger, config } = await inReview(t)
  const many = Array.from({ length: 101 }, (_, index) => `many-${index}`)
  await accepted(
    ledger,
    config,
    many.map((payoutId) => command(payoutId, { batchId: 'many' })),
  )
  for (const payoutId of many)
    await decided(ledger, payoutId, (payout) =>
      cancel(payout, 'OPERATOR', words({ by: 'asha', reason: 'the wrong file' })),
    )
  const lookForOthers = { payPeriod: 'month', known: null } as const
  const request = { ...DECIDED, resolution: resend('R. Iyer'), lookForOthers }
  const would = await previewResolve(request, ledger.db)
  assert.ok(would.kind === 'resolved')
  const others = { found: [], thereMayBeMore: true }
  assert.deepEqual(would.shown.otherPayments, others)
  const unseen = await resolvePayout({ ...request, lookForOthers: { ...lookForOthers, known: [] } }, ledger)
  assert.deepEqual(unseen, { kind: 'unseen', otherPayments: others })
  assert.equal((await resolvePayout({ ...request, shown: would.shown }, ledger)).kind, 'resolved')
})
