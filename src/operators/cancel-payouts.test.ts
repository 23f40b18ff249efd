import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accepted, brokenVersions, payoutsOf, testLedger } from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { FAULTS } from '../domain/commands/refused.ts'
import { QUERY_POLICY } from '../domain/payout/payout.fixture.ts'
import { recordApply } from '../domain/payout/record-apply-answer.ts'
import { become } from '../domain/payout/transition.ts'
import { latestActs } from '../ledger/sql/acts.ts'
import { CANCELS_KEPT_DAYS } from '../ledger/sql/cancels.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { tellPayout } from '../queries/payout-story.ts'
import { cancelText } from '../views/cancel-text.ts'
import { storyText } from '../views/story-text.ts'
import { cancelPayouts, previewCancel } from './cancel-payouts.ts'
import { accept, decided, submit } from './operations.fixture.ts'

const KEY = { merchantId: 'acme', payoutId: 'p-1' }
const REQUEST = { merchantId: 'acme', payoutIds: ['p-1'], by: 'asha', reason: 'wrong person' }
const early = sql<object>`select * from early_cancels`
const messages = sql<object, { topic: string }>`select topic from ${outboxMessages} order by position, n`

async function queued(t: TestContext) {
  const opened = await testLedger(t)
  await accepted(opened.ledger, opened.config, [command('p-1')])
  return opened
}

test('a payout that was never sent is cancelled, and the cancellation is published', async (t) => {
  const { ledger, config } = await queued(t)
  assert.deepEqual(await cancelPayouts(REQUEST, ledger), [
    { payoutId: 'p-1', kind: 'cancelled', from: 'queued' },
  ])
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state, ready }) => [state, ready]),
    [['cancelled', false]],
  )
  const { history } = await tellPayout(ledger.db, KEY, config.sealing)
  const { toState, source, exchange } = history.at(-1) ?? assert.fail('there is no history')
  assert.deepEqual([toState, source, exchange], ['cancelled', 'OPERATOR', { note: 'asha: wrong person' }])
  const { events, results } = ledger.topics
  assert.deepEqual(
    (await ledger.db.run(messages, {})).map(({ topic }) => topic),
    [events, events, results],
  )
})

test('a payout that waits after an attempt goes to review', async (t) => {
  const { ledger } = await queued(t)
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', (payout) => ({
    change: {
      before: payout,
      after: become(payout, 'queued', { turnedAway: true }),
      source: 'APPLY',
      exchange: {},
    },
  }))
  assert.deepEqual(await cancelPayouts(REQUEST, ledger), [
    { payoutId: 'p-1', kind: 'review', from: 'queued' },
  ])
  assert.equal((await payoutsOf(ledger))[0]?.state, 'review')
})

test('a payout that the gateway may have does not move, and the request is kept', async (t) => {
  const { ledger, config } = await queued(t)
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', accept)
  assert.deepEqual(await cancelPayouts(REQUEST, ledger), [
    { payoutId: 'p-1', kind: 'requested', state: 'processing' },
  ])
  const { payout, history } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.deepEqual([payout.state, payout.version], ['processing', 3])
  assert.deepEqual(history.at(-1)?.exchange, { note: 'asha: wrong person' })
  const [act] = await ledger.db.run(latestActs, { merchantId: null, since: null, limit: 1 })
  const stands = { state: 'processing', reason: null, version: 3, utr: null }
  assert.deepEqual(act?.before, { 'p-1': { ...stands, cancelRequest: null } })
  assert.deepEqual(act?.after, { 'p-1': { ...stands, cancelRequest: 'asha: wrong person' } })
  assert.deepEqual(await brokenVersions(ledger), [])
})

test('a request that arrives during a send is kept and shown, and carried out if it turns out that nothing was sent', async (t) => {
  const { ledger, config } = await queued(t)
  await decided(ledger, 'p-1', submit)
  await cancelPayouts(REQUEST, ledger)
  const story = await tellPayout(ledger.db, KEY, config.sealing)
  assert.match(storyText(story), /to be cancelled +asha: wrong person\n/)
  const queryPolicy = { ...QUERY_POLICY, duplicatesRefused: true }
  await decided(ledger, 'p-1', (payout, now) =>
    recordApply(payout, 1, { kind: 'not-sent', reason: 'ECONNREFUSED', exchange: {} }, queryPolicy, now),
  )
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state, reason, ready }) => [state, reason, ready]),
    [['cancelled', 'cancelled', false]],
  )
})

test('a payout whose command breaks a rule ends as rejected, and the outcome says so', async (t) => {
  const { ledger } = await queued(t)
  await decided(ledger, 'p-1', (payout) => ({
    change: {
      before: payout,
      after: become(payout, 'held', { reason: FAULTS, ready: false }),
      source: 'COMMAND',
      exchange: {},
    },
  }))
  assert.deepEqual(await cancelPayouts(REQUEST, ledger), [
    { payoutId: 'p-1', kind: 'rejected', from: 'held' },
  ])
  assert.equal((await payoutsOf(ledger))[0]?.state, 'rejected')
})

test('a preview shows what would happen, and changes nothing', async (t) => {
  const { ledger, config } = await queued(t)
  assert.deepEqual(await previewCancel(REQUEST, ledger.db), [
    { payoutId: 'p-1', kind: 'cancelled', from: 'queued' },
  ])
  const { payout, history } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.deepEqual([payout.state, history.length], ['queued', 1])
})

test('a payout whose command has not arrived yet is cancelled on arrival, in the name of the operator who asked', async (t) => {
  const { ledger, config } = await queued(t)
  const request = { ...REQUEST, payoutIds: ['p-2', 'p-1'] }
  const outcomes = [
    { payoutId: 'p-2', kind: 'remembered' },
    { payoutId: 'p-1', kind: 'cancelled', from: 'queued' },
  ] as const
  assert.deepEqual(await previewCancel(request, ledger.db), outcomes)
  assert.deepEqual(await ledger.db.run(early, {}), [])
  assert.deepEqual(await cancelPayouts(request, ledger), outcomes)
  const [, act] = await ledger.db.run(latestActs, { merchantId: null, since: null, limit: 2 })
  assert.deepEqual([act?.subjects, act?.after], [['p-2'], { cancelledForDays: CANCELS_KEPT_DAYS }])
  await accepted(ledger, config, [command('p-2')])
  const { payout, history } = await tellPayout(ledger.db, { ...KEY, payoutId: 'p-2' }, config.sealing)
  const { source, exchange } = history.at(-1) ?? assert.fail('there is no history')
  assert.deepEqual(
    [payout.state, source, exchange],
    ['cancelled', 'OPERATOR', { note: 'asha: wrong person' }],
  )
})

test('cancelling many at once reports on each, and one that is too late does not hold up the others', async (t) => {
  const { ledger, config } = await queued(t)
  const ids = Array.from({ length: 25 }, (_, i) => `more-${i}`)
  await accepted(
    ledger,
    config,
    ids.map((id) => command(id)),
  )
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'more-24', submit)
  const outcomes = await cancelPayouts({ ...REQUEST, payoutIds: ['p-1', ...ids] }, ledger)
  const lines = cancelText(outcomes, 'is').split('\n')
  assert.match(lines[0] ?? '', /^payout p-1 stays submitting: the gateway may have it/)
  assert.equal(lines[1], 'payout more-0 is cancelled: it was queued, and payoutd never sent it')
  assert.deepEqual(lines.slice(20), [
    'and 5 more are stopped; 1 more may be at the gateway: the cancel request is recorded',
  ])
  const states = (await payoutsOf(ledger)).map(({ state }) => state)
  assert.equal(states.filter((state) => state === 'cancelled').length, 24)
})

test('the reason that an operator gives for a cancellation is kept without its account number', async (t) => {
  const { ledger, config } = await queued(t)
  await cancelPayouts({ ...REQUEST, reason: 'not to 5010 0123 4567 89' }, ledger)
  const { history } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.deepEqual(history.at(-1)?.exchange, { note: 'asha: not to ••••6789' })
})

test('cancelling a payout again adds nothing to its history', async (t) => {
  const { ledger, config } = await queued(t)
  await cancelPayouts(REQUEST, ledger)
  assert.deepEqual(await cancelPayouts(REQUEST, ledger), [
    { payoutId: 'p-1', kind: 'too-late', state: 'cancelled' },
  ])
  const { history } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.deepEqual(
    history.map(({ toState }) => toState),
    ['queued', 'cancelled'],
  )
})

test('a second request before the payout arrives renews the first one, which keeps its words', async (t) => {
  const { ledger } = await queued(t)
  await cancelPayouts({ ...REQUEST, payoutIds: ['p-2'] }, ledger)
  await ledger.db.run(sql<object>`update early_cancels set at = now() - interval '99 days'`, {})
  await cancelPayouts({ ...REQUEST, payoutIds: ['p-2'], reason: 'left' }, ledger)
  const stored = sql<object>`select why, at > now() - interval '1 day' as anew from early_cancels`
  assert.deepEqual(await ledger.db.run(stored, {}), [{ why: 'asha: wrong person', anew: true }])
  const acts = await ledger.db.run(latestActs, { merchantId: null, since: null, limit: 9 })
  assert.deepEqual(
    acts.map(({ subjects }) => subjects),
    [['p-2'], ['p-2']],
  )
})
