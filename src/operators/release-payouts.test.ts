import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { accepted, brokenVersions, payoutsOf, testLedger, upsertMerchant } from '../../test/ledger.ts'
import { checkHolds } from '../doctor/stopped-sending.ts'
import { contradicts, withFacts } from '../domain/anomaly-details.ts'
import { command } from '../domain/commands/command.fixture.ts'
import type { PayoutCommand } from '../domain/commands/command.ts'
import { HOLD_REASONS, type HoldReason } from '../domain/commands/holds.ts'
import { words } from '../domain/mask.ts'
import { paise } from '../domain/money.ts'
import { cancel } from '../domain/payout/cancel.ts'
import type { Decision, Payout } from '../domain/payout/payout.ts'
import { anomaly, become } from '../domain/payout/transition.ts'
import { Metrics } from '../platform/metrics.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { ledgerMetrics } from '../queries/ledger-metrics.ts'
import { tellPayout } from '../queries/payout-story.ts'
import { awaitingRelease, heldOfBatch } from '../queries/sql/payouts/holds.ts'
import { payoutsOfBatch } from '../queries/sql/payouts/list.ts'
import { listText } from '../views/list-text.ts'
import { releaseText } from '../views/release-text.ts'
import { storyText } from '../views/story-text.ts'
import { decided, submit } from './operations.fixture.ts'
import { previewRelease, releasePayouts } from './release-payouts.ts'

const DAY = 86_400_000
const comesBack = sql<{ payoutId: string }>`
  insert into reversals (merchant_id, payout_id, anomaly_id, amount, reversed_by, reason)
  values ('acme', ${'payoutId'}, gen_random_uuid(), 10000, 'asha', 'returned')`
const heldFor = sql<{ payoutId: string; earlierPayoutId: string }>`
  update holds set earlier_payout_id = ${'earlierPayoutId'} where payout_id = ${'payoutId'}`
const expire = sql<object>`update payouts set deadline = now() - interval '1 second' where payout_id = 'again-1'`
const request = (...payoutIds: string[]) => ({
  merchantId: 'acme',
  payoutIds,
  by: 'asha',
  reason: 'two salaries',
  payPeriod: 'month' as const,
  known: null,
  shown: null,
})

/** A ledger with `salary-1` queued, and `again-1` of another batch held as its duplicate. */
async function held(t: TestContext, fields: Partial<PayoutCommand> = {}) {
  const opened = await testLedger(t)
  const take = (...commands: PayoutCommand[]) =>
    accepted(opened.ledger, opened.config, commands, { holdDuplicates: true })
  await take(command('salary-1', fields))
  await take(command('again-1', { batchId: 'november-2', ...fields }))
  return { ...opened, take }
}

test('a released payout is queued, and its history shows who released it and why', async (t) => {
  const { ledger, config } = await held(t)
  const [outcome] = await releasePayouts(request('again-1'), ledger)
  assert.equal(outcome?.kind, 'queued')
  const [payout] = await payoutsOf(ledger)
  assert.deepEqual([payout?.payoutId, payout?.state, payout?.ready], ['again-1', 'queued', true])
  const { history, holds } = await tellPayout(
    ledger.db,
    { merchantId: 'acme', payoutId: 'again-1' },
    config.sealing,
  )
  assert.deepEqual(
    history.map(({ toState, reason, source }) => [toState, reason, source]),
    [
      ['held', 'duplicate', 'COMMAND'],
      ['queued', null, 'OPERATOR'],
    ],
  )
  assert.deepEqual(history.at(-1)?.exchange, { note: 'asha: two salaries' })
  assert.equal(holds[0]?.earlierPayoutId, 'salary-1')
  assert.deepEqual(await brokenVersions(ledger), [])
})

test('a scheduled payout waits for its time', async (t) => {
  const notBefore = Date.now() + DAY
  const { ledger } = await held(t, { notBefore })
  const [outcome] = await releasePayouts(request('again-1'), ledger)
  assert.ok(outcome?.kind === 'scheduled')
  assert.equal(outcome.paysAt, notBefore)
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason]),
    [
      ['held', 'schedule'],
      ['held', 'schedule'],
    ],
  )
})

test('a second release, or a release of a payout that waits for none, moves nothing and reports that', async (t) => {
  const { ledger } = await held(t)
  await releasePayouts(request('again-1'), ledger)
  const second = { ...request('again-1', 'salary-1', 'nobody'), by: 'meera' }
  const [released, ...others] = await releasePayouts(second, ledger)
  assert.ok(released?.kind === 'not-waiting' && released.released)
  assert.deepEqual([released.state, released.released.note], ['queued', 'asha: two salaries'])
  assert.deepEqual(others, [
    { payoutId: 'salary-1', kind: 'not-waiting', state: 'queued', reason: null, released: null },
    { payoutId: 'nobody', kind: 'unknown' },
  ])
  const [first, ...rest] = releaseText([released, ...others], 'is').split('\n')
  assert.match(
    first ?? '',
    /^payout again-1 stays queued: it was released at \S+ \S+Z, by asha: two salaries$/,
  )
  assert.deepEqual(rest, [
    'payout salary-1 stays queued: it is not held for a release',
    'payout nobody is no longer in the ledger',
  ])
})

test('a payout past its deadline cannot be released', async (t) => {
  const { ledger } = await held(t)
  await ledger.db.run(expire, {})
  assert.equal((await releasePayouts(request('again-1'), ledger))[0]?.kind, 'expired')
  assert.equal((await payoutsOf(ledger))[0]?.state, 'held')
})

const raise = sql<object>`
  insert into merchants (merchant_id, settings_hash, recovering_since, recovering_by, recovering_reason)
  values ('acme', '', now(), 'payoutd', 'a failover')
  on conflict (merchant_id) do update set recovering_since = now(), recovering_by = 'payoutd', recovering_reason = 'a failover'`

const doubt = sql<object>`update payouts set doubted = true`
const lower = sql<object>`
  update merchants set recovering_since = null, recovering_by = null, recovering_reason = null`

test('while its merchant is fenced, no release reports a payout as cancelled at its deadline, or as payable under another payoutId', async (t) => {
  const { ledger, config } = await held(t)
  const story = async () =>
    storyText(await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'again-1' }, config.sealing))
  assert.match(await story(), /deadline +\S+ \S+Z, when payoutd cancels it\n/)
  await ledger.db.run(raise, {})
  assert.match(await story(), /deadline +\S+ \S+Z, when it keeps waiting for payoutd recover, [^\n]*\n/)
  await ledger.db.run(lower, {})
  await ledger.db.run(expire, {})
  const releaseAgain = async () => releaseText(await releasePayouts(request('again-1'), ledger), 'is')
  assert.match(await releaseAgain(), /so it is cancelled; pay it under a new payoutId$/)
  await ledger.db.run(raise, {})
  assert.match(
    await releaseAgain(),
    /may have been sent.*: do not pay it under another payoutId before payoutd recover has ended$/,
  )
})

test('at its deadline a payout of which no byte ever left is cancelled, whatever was tried', async (t) => {
  const { ledger, config } = await held(t)
  await ledger.db.run(sql<object>`update payouts set attempt = 2 where payout_id = 'again-1'`, {})
  const story = await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'again-1' }, config.sealing)
  assert.match(storyText(story), /deadline +\S+ \S+Z, when payoutd cancels it\n/)
})

test('nor while it is in doubt whether a lost ledger sent it', async (t) => {
  const { ledger, config } = await held(t)
  await ledger.db.run(doubt, {})
  const story = await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'again-1' }, config.sealing)
  assert.match(storyText(story), /deadline +\S+ \S+Z, when a person decides about it\n/)
  await ledger.db.run(expire, {})
  const text = releaseText(await releasePayouts(request('again-1'), ledger), 'is')
  assert.match(
    text,
    /may have been sent.* you must not pay it under another payoutId before a person has decided about it$/,
  )
})

test('a preview shows what would happen, and changes nothing', async (t) => {
  const { ledger } = await held(t)
  const outcomes = await previewRelease(request('again-1'), ledger.db)
  assert.match(
    releaseText(outcomes, 'would be'),
    /^payout again-1 would be queued; it was held because payout salary-1 of batch november \(queued\) of 20\S+ \S+ pays the same amount to the same beneficiary/,
  )
  assert.equal((await payoutsOf(ledger))[0]?.state, 'held')
})

test('of a batch, only payouts that wait for a release for the given reasons are found', async (t) => {
  const { ledger, config } = await held(t)
  const take = (...commands: PayoutCommand[]) =>
    accepted(ledger, config, commands, { holdDuplicates: true, holdChangedBeneficiaries: true })
  const ravi = { beneficiaryId: 'ravi', accountNo: '50100999999999', amount: paise(200n) }
  const moved = { ...ravi, batchId: 'november-2', accountNo: '50100888888888' }
  await take(command('new-2', { batchId: 'november-2', accountNo: '50100777777777' }))
  await take(
    command('ravi-1', ravi),
    command('other-1', { ...moved, batchId: 'november', beneficiaryId: null }),
  )
  await decided(ledger, 'ravi-1', submit)
  await decided(ledger, 'ravi-1', (before) => ({
    change: { before, after: become(before, 'paid', {}), source: 'APPLY', exchange: null },
  }))
  await take(command('both-2', moved), command('moved-2', { ...moved, amount: paise(300n) }))
  const found = async (...reasons: HoldReason[]) =>
    (await ledger.db.run(heldOfBatch, { merchantId: 'acme', batchId: 'november-2', reasons })).map(
      ({ payoutId }) => payoutId,
    )
  assert.deepEqual(await found(...HOLD_REASONS), ['again-1', 'both-2', 'moved-2'])
  assert.deepEqual(await found('duplicate'), ['again-1'])
  assert.deepEqual(await found('beneficiary-changed'), ['moved-2'])
})

test('a release applies to what was shown: if the earlier payout moved meanwhile, the later one stays held', async (t) => {
  const { ledger } = await held(t)
  const shown = await previewRelease(request('again-1'), ledger.db)
  await decided(ledger, 'salary-1', submit)
  const moved = await releasePayouts({ ...request('again-1'), shown }, ledger)
  assert.deepEqual(moved, [{ payoutId: 'again-1', kind: 'moved' }])
  assert.match(releaseText(moved, 'is'), /^payout again-1 stays held: .*look at it again$/)
  assert.equal((await payoutsOf(ledger))[0]?.state, 'held')
  const again = await previewRelease(request('again-1'), ledger.db)
  const [released] = await releasePayouts({ ...request('again-1'), shown: again }, ledger)
  assert.equal(released?.kind, 'queued')
})

test('a release that was shown before new evidence about the payout arrived is not carried out', async (t) => {
  const { ledger } = await held(t)
  const shown = await previewRelease(request('again-1'), ledger.db)
  await decided(ledger, 'again-1', (payout) => anomaly(payout, 'CALLBACK', 'amount-mismatch', '200', {}))
  const moved = await releasePayouts({ ...request('again-1'), shown }, ledger)
  assert.deepEqual(moved, [{ payoutId: 'again-1', kind: 'moved' }])
})

test('several payouts are reported with their total', async (t) => {
  const { ledger, take } = await held(t)
  await take(command('again-2', { batchId: 'november-3' }))
  const text = releaseText(
    await previewRelease(request('again-1', 'again-2', 'salary-1'), ledger.db),
    'would be',
  )
  assert.match(text, /\n2 payouts, ₹1,00,000\.00 together, would be released$/)
})

test('the list and the story name the earlier payout, without its bank details', async (t) => {
  const { ledger, config } = await held(t)
  const listed = await ledger.db.run(payoutsOfBatch, {
    merchantId: 'acme',
    batchId: 'november-2',
    states: ['held'],
    limit: 10,
  })
  assert.match(listText(listed), /held \(duplicate: salary-1\)/)
  const story = storyText(
    await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'again-1' }, config.sealing),
  )
  assert.match(
    story,
    /held because\n {2}payout salary-1 of batch november \(queued\) of 20\S+ \S+ pays the same amount/,
  )
  assert.doesNotMatch(story, /50100123456789/)
  assert.match(story, /deadline +\S+ \S+Z, when payoutd cancels it\n/)
  assert.doesNotMatch(story, /next look/)
  await releasePayouts(request('again-1'), ledger)
  const key = { merchantId: 'acme', payoutId: 'again-1' }
  assert.match(storyText(await tellPayout(ledger.db, key, config.sealing)), /\nwas held because\n/)
})

test('the metrics and doctor count held payouts until they are released or cancelled', async (t) => {
  const { ledger, take } = await held(t)
  await take(command('again-2', { batchId: 'november-3' }))
  await ledger.db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  const metrics = new Metrics()
  ledgerMetrics(metrics, ledger.db)
  const counted = async (reason: string) =>
    (await metrics.registry.metrics()).match(
      new RegExp(`payoutd_payouts_held\\{merchant="acme",reason="${reason}"\\} (\\d+)`),
    )?.[1]
  assert.deepEqual([await counted('duplicate'), await counted('beneficiary-changed')], ['2', '0'])
  assert.deepEqual(checkHolds(await ledger.db.run(awaitingRelease, {})), {
    state: 'warning',
    what: 'a person has to look: 2 of merchant acme (duplicate)',
    todo: 'payoutd payout list --state held shows them; release them with payoutd payout release, or cancel them with payoutd payout cancel. payoutd cancels a payout that nobody released by its deadline',
  })
  await releasePayouts(request('again-1'), ledger)
  await decided(ledger, 'again-2', (payout) =>
    cancel(payout, 'OPERATOR', words({ by: 'asha', reason: 'paid already' })),
  )
  assert.equal(await counted('duplicate'), '0')
  assert.equal(checkHolds(await ledger.db.run(awaitingRelease, {})).state, 'good')
})

test('a payout that a recovery will cancel is not released, and the operator is told that', async (t) => {
  const { ledger } = await held(t)
  await decided(ledger, 'again-1', (payout) =>
    cancel(payout, 'OPERATOR', words({ by: 'meera', reason: 'paid by cheque' }), { fenced: true }),
  )
  for (const outcomes of [
    await previewRelease(request('again-1'), ledger.db),
    await releasePayouts(request('again-1'), ledger),
  ])
    assert.equal(
      releaseText(outcomes, 'would be'),
      'payout again-1 stays held, because somebody asked to cancel it (meera: paid by cheque): payoutd recover cancels it unless the gateway has it',
    )
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ payoutId, state }) => [payoutId, state]),
    [
      ['again-1', 'held'],
      ['salary-1', 'queued'],
    ],
  )
})

test('an operator who is asked to release a payout sees what the gateway reports against the failure of the earlier one', async (t) => {
  const { ledger } = await held(t)
  await decided(ledger, 'salary-1', submit)
  await decided(ledger, 'salary-1', (before) => ({
    change: { before, after: become(before, 'failed', { reason: 'NO' }), source: 'APPLY', exchange: null },
  }))
  const shown = async () => releaseText(await previewRelease(request('again-1'), ledger.db), 'would be')
  assert.match(await shown(), /payout salary-1 of batch november \(failed\) of/)
  const paidAfterAll = withFacts(contradicts('success', 'failed'), {
    ...{ status: 'success', amount: null, orderId: 'AP1', utr: null },
  })
  await decided(ledger, 'salary-1', (payout) =>
    anomaly(payout, 'CALLBACK', 'contradiction', paidAfterAll, null),
  )
  assert.match(await shown(), /salary-1 of batch november \(failed, yet the gateway has said otherwise, see /)
})

test('a release says of a paid payout that its money came back, once a person has confirmed that', async (t) => {
  const { ledger, take } = await held(t)
  await decided(ledger, 'salary-1', submit)
  await decided(ledger, 'salary-1', pay)
  await take(command('again-2', { batchId: 'november-3' }))
  await ledger.db.run(comesBack, { payoutId: 'salary-1' })
  const text = releaseText(await previewRelease(request('again-1', 'again-2'), ledger.db), 'would be')
  assert.match(text, /again-1 .*payout salary-1 of batch november \(paid, and the money came back\)/)
  await decided(ledger, 'again-1', (payout) =>
    cancel(payout, 'OPERATOR', words({ by: 'asha', reason: 'no need' })),
  )
  await ledger.db.run(heldFor, { payoutId: 'again-2', earlierPayoutId: 'again-1' })
  const [outcome] = await previewRelease(request('again-2'), ledger.db)
  const others = outcome?.kind === 'queued' ? outcome.otherPayments.found : []
  assert.deepEqual(
    others.map(({ payoutId, cameBack }) => [payoutId, cameBack]),
    [['salary-1', true]],
  )
})

/** `salary-1` was cancelled after `again-1` and `again-2` had been held as its duplicates, each in a batch of its own. */
async function heldTwice(t: TestContext) {
  const opened = await held(t)
  await opened.take(command('again-2', { batchId: 'november-3' }))
  await decided(opened.ledger, 'salary-1', (payout) =>
    cancel(payout, 'OPERATOR', words({ by: 'asha', reason: 'the wrong file' })),
  )
  return opened
}

const pay = (before: Payout): Decision => ({
  change: { before, after: become(before, 'paid', {}), source: 'APPLY', exchange: null },
})

test('a release names every other payout that pays the same by now, not only the one that the hold names', async (t) => {
  const { ledger, take } = await heldTwice(t)
  await releasePayouts(request('again-1'), ledger)
  await decided(ledger, 'again-1', submit)
  await decided(ledger, 'again-1', pay)
  await take(command('again-3', { batchId: 'november-4' }), command('other', { amount: paise(100n) }))
  const outcomes = await previewRelease(request('again-2'), ledger.db)
  assert.match(
    releaseText(outcomes, 'would be'),
    /^payout again-2 would be queued; it was held because payout salary-1 of batch november \(cancelled\) of [^;]+; by now payout again-1 of batch november-2 \(paid\) and payout again-3 of batch november-4 \(held \(duplicate\)\) pay the same amount to the same beneficiary$/,
  )
  const [only] = await releasePayouts({ ...request('again-2'), shown: outcomes }, ledger)
  assert.equal(only?.kind, 'queued')
})

test('payouts that one command releases are named to each other', async (t) => {
  const { ledger } = await heldTwice(t)
  const both = request('again-1', 'again-2')
  const shown = await previewRelease(both, ledger.db)
  const [first, second] = releaseText(shown, 'would be').split('\n')
  assert.match(
    first ?? '',
    /; by now payout again-2 of batch november-3 \(held \(duplicate\), and released by this command too\) pays the same/,
  )
  assert.match(
    second ?? '',
    /; by now payout again-1 of batch november-2 \(held \(duplicate\), and released by/,
  )
  const released = await releasePayouts({ ...both, shown }, ledger)
  assert.deepEqual(
    released.map(({ kind }) => kind),
    ['queued', 'queued'],
  )
})

test('a release that a person agreed to is whole, though its first part is released before the rest', async (t) => {
  const { ledger } = await heldTwice(t)
  const both = request('again-1', 'again-2')
  const shown = await previewRelease(both, ledger.db)
  await releasePayouts({ ...both, payoutIds: ['again-1'], shown }, ledger)
  const [rest] = await releasePayouts({ ...both, payoutIds: ['again-2'], shown }, ledger)
  assert.equal(rest?.kind, 'queued')
})

test('a payout that pays the same and was released after the question is no part of the answer', async (t) => {
  const { ledger } = await heldTwice(t)
  const shown = await previewRelease(request('again-2'), ledger.db)
  await releasePayouts(request('again-1'), ledger)
  const moved = await releasePayouts({ ...request('again-2'), shown }, ledger)
  assert.deepEqual(moved, [{ payoutId: 'again-2', kind: 'moved' }])
})

test('a payout that pays the same and went on from being sent to being paid is what was shown', async (t) => {
  const { ledger } = await heldTwice(t)
  await releasePayouts(request('again-1'), ledger)
  const shown = await previewRelease(request('again-2'), ledger.db)
  await decided(ledger, 'again-1', submit)
  await decided(ledger, 'again-1', pay)
  const [released] = await releasePayouts({ ...request('again-2'), shown }, ledger)
  assert.equal(released?.kind, 'queued')
})

test('of two releases of the same moment one sees the other', async (t) => {
  const { ledger } = await heldTwice(t)
  const agreed = await Promise.all(
    ['again-1', 'again-2'].map(async (id) => ({
      ...request(id),
      shown: await previewRelease(request(id), ledger.db),
    })),
  )
  const outcomes = await Promise.all(agreed.map((each) => releasePayouts(each, ledger)))
  assert.deepEqual(outcomes.map(([outcome]) => outcome?.kind).sort(), ['moved', 'queued'])
})

test('where nobody is asked, a payout is released only if whatever else pays the same is named', async (t) => {
  const { ledger } = await heldTwice(t)
  const unasked = (known: string[], ...payoutIds: string[]) => ({ ...request(...payoutIds), known })
  const together = await releasePayouts(unasked([], 'again-1', 'again-2'), ledger)
  assert.deepEqual(
    together.map(({ kind }) => kind),
    ['unseen', 'unseen'],
  )
  const [first] = await releasePayouts(unasked([], 'again-1'), ledger)
  assert.equal(first?.kind, 'queued')
  const refused = await releasePayouts(unasked([], 'again-2'), ledger)
  assert.equal(
    releaseText(refused, 'is'),
    'payout again-2 stays held: payout again-1 of batch november-2 (queued) pays the same amount to the same beneficiary, and with --yes nobody is asked about that: name those that you know of with --besides, or leave out --yes',
  )
  const [second] = await releasePayouts(unasked(['again-1'], 'again-2'), ledger)
  assert.equal(second?.kind, 'queued')
})

const paidLastMonth = sql<object>`
  update payments set pays_at = date_trunc('month', now()) - interval '1 day' where payout_id = 'again-1'`

test('a payout that pays the same and was paid in an earlier pay period is not named, but one that still waits is', async (t) => {
  const { ledger } = await heldTwice(t)
  await ledger.db.run(paidLastMonth, {})
  const others = async () => {
    const [outcome] = await previewRelease(request('again-2'), ledger.db)
    return outcome?.kind === 'queued' && outcome.otherPayments.found.map(({ payoutId }) => payoutId)
  }
  assert.deepEqual(await others(), ['again-1'])
  await releasePayouts(request('again-1'), ledger)
  await decided(ledger, 'again-1', submit)
  await decided(ledger, 'again-1', pay)
  assert.deepEqual(await others(), [])
})

/** `again-1` held in a batch of its own, and `early-1` paid since; of the same, 150 payouts of another batch were cancelled. */
async function heldBehindMany(t: TestContext) {
  const opened = await testLedger(t)
  const { ledger, config } = opened
  const take = (...commands: PayoutCommand[]) => accepted(ledger, config, commands, { holdDuplicates: true })
  const many = Array.from({ length: 150 }, (_, index) => `many-${index}`)
  await take(...many.map((payoutId) => command(payoutId, { batchId: 'many' })))
  await take(command('again-1', { batchId: 'then' }))
  for (const payoutId of many)
    await decided(ledger, payoutId, (payout) =>
      cancel(payout, 'OPERATOR', words({ by: 'asha', reason: 'the wrong file' })),
    )
  await take(command('early-1', { batchId: 'early' }))
  await releasePayouts(request('early-1'), ledger)
  await decided(ledger, 'early-1', submit)
  await decided(ledger, 'early-1', pay)
  return opened
}

test('a release says that payoutd did not look at all that pays the same, though nothing that it looked at does', async (t) => {
  const { ledger, config } = await heldBehindMany(t)
  const shown = await previewRelease(request('again-1'), ledger.db)
  assert.ok(shown[0]?.kind === 'queued')
  assert.deepEqual(shown[0].otherPayments, { found: [], thereMayBeMore: true })
  assert.match(
    releaseText(shown, 'would be'),
    /; by now perhaps some of the many payouts that payoutd did not look at pay the same amount to the same beneficiary$/,
  )
  const story = await tellPayout(ledger.db, { merchantId: 'acme', payoutId: 'again-1' }, config.sealing)
  assert.match(
    storyText(story, shown[0].otherPayments),
    /\nother payouts of the same amount to the same beneficiary\n {2}perhaps some of the many payouts that /,
  )
  const unasked = await releasePayouts({ ...request('again-1'), known: ['early-1'] }, ledger)
  assert.match(
    releaseText(unasked, 'is'),
    /^payout again-1 stays held: perhaps some of .*: leave out --yes and look, because you cannot name those /,
  )
  const [released] = await releasePayouts({ ...request('again-1'), shown }, ledger)
  assert.equal(released?.kind, 'queued')
})

const fileHashOf = (name: string): string => createHash('sha256').update(name).digest('hex')

/** Payouts of one amount to one id; each is a row of a file of its batch, which has the batch's name. */
async function ofOneId(t: TestContext) {
  const opened = await testLedger(t)
  const { ledger, config } = opened
  const take = (payoutId: string, accountNo: string, fields: Partial<PayoutCommand> = {}) =>
    accepted(
      ledger,
      config,
      [
        command(payoutId, {
          ...{ beneficiaryId: 'E-17', accountNo, batchId: payoutId, fileHash: fileHashOf(payoutId) },
          ...fields,
        }),
      ],
      { holdDuplicates: true, holdChangedBeneficiaries: true },
    )
  const others = async (payoutId: string) => {
    const [outcome] = await previewRelease(request(payoutId), ledger.db)
    return outcome?.kind === 'queued' && outcome.otherPayments.found.map(({ payoutId }) => payoutId)
  }
  return { ...opened, take, others }
}

test('a release names what pays the same to other bank details of one id, unless it is of the same file', async (t) => {
  const { ledger, take, others } = await ofOneId(t)
  await take('first', '501001111')
  await decided(ledger, 'first', submit)
  await take('november', '501001111')
  await take('split', '501002222', { batchId: 'november', fileHash: fileHashOf('november') })
  await take('other-file', '501003333', { batchId: 'november' })
  await take('fix', '501004444')
  await take('other-amount', '501005555', { amount: paise(300n) })
  await take('other-id', '501006666', { beneficiaryId: 'E-18' })
  assert.deepEqual(await others('november'), ['fix', 'other-file'])
  assert.deepEqual(await others('fix'), ['first', 'november', 'other-file', 'split'])
  await releasePayouts(request('fix'), ledger)
  await decided(ledger, 'fix', submit)
  await decided(ledger, 'fix', pay)
  const refused = await releasePayouts({ ...request('november'), known: [] }, ledger)
  assert.match(
    releaseText(refused, 'is'),
    /^payout november stays held: payout fix of batch fix \(paid, to other bank details\) pays the same amount to the same ben/,
  )
  const [released] = await releasePayouts({ ...request('november'), known: ['fix'] }, ledger)
  assert.equal(released?.kind, 'queued')
})

test('a hold for changed bank details does not tell that the payment which it names pays the same', async (t) => {
  const { ledger, take } = await ofOneId(t)
  await take('first', '501001111')
  await decided(ledger, 'first', submit)
  await take('fix', '501004444')
  const fix = { ...request('fix'), known: [] }
  assert.equal((await releasePayouts(fix, ledger))[0]?.kind, 'unseen')
  assert.equal((await releasePayouts({ ...fix, known: ['first'] }, ledger))[0]?.kind, 'queued')
})

const aMonthEarlier = sql<{ but: string[] }>`
  with moved as (
    update payments set pays_at = pays_at - interval '1 month' where payout_id <> all(${'but'}::text[])
  )
  update beneficiary_payments set pays_at = pays_at - interval '1 month' where payout_id <> all(${'but'}::text[])`

test('of many payments to one id, a release looks at the last, and says so if they are of its own pay period', async (t) => {
  const { ledger, take } = await ofOneId(t)
  for (let i = 0; i < 100; i++) await take(`one-${i}`, '501001111', { amount: paise(BigInt(i + 1)) })
  await take('fix', '501004444')
  const others = async () => {
    const [outcome] = await previewRelease(request('fix'), ledger.db)
    return outcome?.kind === 'queued' && outcome.otherPayments
  }
  assert.deepEqual(await others(), { found: [], thereMayBeMore: true })
  await ledger.db.run(aMonthEarlier, { but: ['fix'] })
  assert.deepEqual(await others(), { found: [], thereMayBeMore: false })
})

test('a payout that pays the same and waits since for a release of its own does not stop a release', async (t) => {
  const { ledger, take } = await heldTwice(t)
  const shown = await previewRelease(request('again-2'), ledger.db)
  await take(command('again-3', { batchId: 'november-4' }))
  const [released] = await releasePayouts({ ...request('again-2'), shown }, ledger)
  assert.equal(released?.kind, 'queued')
  const [next] = await previewRelease(request('again-3'), ledger.db)
  assert.ok(next?.kind === 'queued')
  assert.ok(next.otherPayments.found.some(({ payoutId }) => payoutId === 'again-2'))
})
