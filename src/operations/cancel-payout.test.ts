import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accepted, brokenVersions, payoutsOf, testLedger } from '../../test/ledger.ts'
import { command } from '../payout/command.fixture.ts'
import { become } from '../payout/transition.ts'
import { sql } from '../platform/postgres.ts'
import { cancelPayout, previewCancel } from './cancel-payout.ts'
import { accept, decided, submit } from './operations.fixture.ts'
import { tellPayout } from './payout-story.ts'

const REQUEST = { merchantId: 'acme', payoutId: 'p-1', by: 'asha', reason: 'wrong person' }
const messages = sql<object, { topic: string }>`select topic from outbox order by position`

async function queued(t: TestContext) {
  const opened = await testLedger(t)
  await accepted(opened.ledger, opened.config, [command('p-1')])
  return opened
}

test('a payout that was never sent is cancelled, and everyone is told', async (t) => {
  const { ledger, config } = await queued(t)
  assert.deepEqual(await cancelPayout(REQUEST, ledger), { kind: 'cancelled', from: 'queued' })
  assert.deepEqual(
    (await payoutsOf(ledger)).map(({ state, ready }) => [state, ready]),
    [['cancelled', false]],
  )
  const { history } = await tellPayout(ledger.db, REQUEST, config.sealing)
  const { toState, source, exchange } = history.at(-1) ?? assert.fail('there is no history')
  assert.deepEqual([toState, source, exchange], ['cancelled', 'OPERATOR', { note: 'asha: wrong person' }])
  const { events, results } = ledger.topics
  assert.deepEqual(
    (await ledger.db.run(messages, {})).map(({ topic }) => topic),
    [events, events, results],
  )
})

test('one that waits after an attempt goes to a person', async (t) => {
  const { ledger } = await queued(t)
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', (payout) => ({
    change: { before: payout, after: become(payout, 'queued', {}), source: 'APPLY', exchange: {} },
  }))
  assert.deepEqual(await cancelPayout(REQUEST, ledger), { kind: 'review', from: 'queued' })
  assert.equal((await payoutsOf(ledger))[0]?.state, 'review')
})

test('for one that the gateway may have it is too late: nothing moves, and the request is kept', async (t) => {
  const { ledger, config } = await queued(t)
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', accept)
  assert.deepEqual(await cancelPayout(REQUEST, ledger), { kind: 'too-late', state: 'processing' })
  const { payout, history } = await tellPayout(ledger.db, REQUEST, config.sealing)
  assert.deepEqual([payout.state, payout.version], ['processing', 3])
  assert.deepEqual(history.at(-1)?.exchange, { note: 'asha: wrong person' })
  assert.deepEqual(await brokenVersions(ledger), [])
})

test('a preview says what would happen, and does nothing', async (t) => {
  const { ledger, config } = await queued(t)
  assert.deepEqual(await previewCancel(REQUEST, ledger.db), { kind: 'cancelled', from: 'queued' })
  const { payout, history } = await tellPayout(ledger.db, REQUEST, config.sealing)
  assert.deepEqual([payout.state, history.length], ['queued', 1])
})

test('a payout that nobody knows is said to be unknown', async (t) => {
  const { ledger } = await queued(t)
  const request = { ...REQUEST, payoutId: 'p-2' }
  assert.deepEqual(await cancelPayout(request, ledger), { kind: 'unknown' })
  assert.deepEqual(await previewCancel(request, ledger.db), { kind: 'unknown' })
})
