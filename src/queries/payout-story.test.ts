import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { accepted, payoutsOf, testLedger } from '../../test/ledger.ts'
import { command } from '../domain/commands/command.fixture.ts'
import { payoutIdFor } from '../domain/identifiers.ts'
import { paise } from '../domain/money.ts'
import type { Decision, Payout } from '../domain/payout/payout.ts'
import { become } from '../domain/payout/transition.ts'
import { storeDecisions } from '../ledger/ledger.ts'
import { accept, decided, submit } from '../operators/operations.fixture.ts'
import { keepSettings } from '../operators/sql/gateway-settings.ts'
import { systemClock } from '../platform/running/clock.ts'
import { openAttempts } from '../stages/dispatch/sql/claim.ts'
import { listText } from '../views/list-text.ts'
import { storyText } from '../views/story-text.ts'
import { payoutsInStates } from './list-payouts.ts'
import { findPayout, tellPayout } from './payout-story.ts'
import { payoutsOfBatch } from './sql/payouts/list.ts'
import type { Attempt } from './sql/payouts/story.ts'

const KEY = { merchantId: 'acme', payoutId: 'p-1' }
const SECRETS = ['50100123456789', 'Asha Rao', 'asha.rao@okaxis', '9876543210', 'asha@example.in']

/** A payout that was sent and accepted, with an anomaly about it. */
async function sent(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  const secrets = { accountName: 'Asha Rao', phoneNumber: '9876543210', payerEmail: 'asha@example.in' }
  const remark = 'salary for Asha Rao, account 50100123456789'
  await accepted(ledger, config, [command('p-1', { ...secrets, remark }), command('p-2')])
  await decided(ledger, 'p-1', submit)
  const orderNo = (await payoutsOf(ledger))[0]?.orderNo ?? assert.fail('p-1 is not there')
  await ledger.db.run(openAttempts, {
    merchantId: 'acme',
    attempts: [{ payoutId: 'p-1', attempt: 1, orderNo, claimedAt: systemClock.now() }],
    owner: 'process-7',
    settingsHash: 'h',
    leaseUntil: 1_800_000_000_000,
  })
  await decided(ledger, 'p-1', accept)
  await ledger.db.transaction('test', (tx) =>
    storeDecisions(tx, ledger, [
      {
        anomaly: {
          ...KEY,
          orderNo,
          kind: 'amount-mismatch',
          detail: 'the gateway says 200',
          source: 'CALLBACK',
          exchange: { request: { amount: '200' } },
        },
      },
    ]),
  )
  return { ledger, config, orderNo }
}

test("a payout is found by its id, its order number or the gateway's id for it", async (t) => {
  const { ledger, orderNo } = await sent(t)
  for (const [id, by] of [
    ['p-1', 'payoutId'],
    [orderNo, 'order number'],
    ['AP-p-1', 'agentpayOrderId'],
  ] as const) {
    assert.deepEqual(await findPayout(ledger.db, 'acme', id), { key: KEY, by })
  }
})

test('a payout is found by batch and reference though either has slashes; payoutd does not guess if two payouts match', async (t) => {
  const { ledger, config } = await testLedger(t)
  const inFile = (batchId: string, reference: string) =>
    command(payoutIdFor('acme', batchId, reference), { batchId })
  const [slashed, other, plain] = [
    inFile('salary/2026', 'EMP1'),
    inFile('salary', '2026/EMP1'),
    inFile('salary/2026', 'EMP/2'),
  ] as const
  await accepted(ledger, config, [slashed, plain])
  for (const [name, { payoutId }] of [
    ['salary/2026/EMP1', slashed],
    ['salary/2026/EMP/2', plain],
  ] as const)
    assert.deepEqual((await findPayout(ledger.db, 'acme', name))?.key.payoutId, payoutId)
  await accepted(ledger, config, [other])
  await assert.rejects(findPayout(ledger.db, 'acme', 'salary/2026/EMP1'), (error: Error) =>
    [slashed, other].every(({ payoutId }) => error.message.includes(payoutId)),
  )
})

test('a payout of another merchant is not found', async (t) => {
  const { ledger, orderNo } = await sent(t)
  for (const id of ['p-1', orderNo, 'AP-p-1', 'nobody']) {
    assert.equal(await findPayout(ledger.db, 'bolt', id), null)
  }
})

test('the story holds every transition with its evidence, the attempts and the anomalies', async (t) => {
  const { ledger, config, orderNo } = await sent(t)
  const { payout, attempts, history, anomalies } = await tellPayout(ledger.db, KEY, config.sealing)
  assert.equal(payout.state, 'processing')
  assert.deepEqual(
    history.map(({ version, fromState, toState, source }) => [version, fromState, toState, source]),
    [
      [1, null, 'queued', 'COMMAND'],
      [2, 'queued', 'submitting', 'COMMAND'],
      [3, 'submitting', 'processing', 'APPLY'],
    ],
  )
  assert.deepEqual(
    attempts.map((attempt) => [attempt.attempt, attempt.orderNo, attempt.owner, attempt.leaseUntil]),
    [[1, orderNo, 'process-7', 1_800_000_000_000]],
  )
  assert.deepEqual(
    anomalies.map(({ kind, detail }) => [kind, detail]),
    [['amount-mismatch', 'the gateway says 200']],
  )
})

test('each attempt names the gateway account that it was sent to, but nothing of its key', async (t) => {
  const { ledger, config } = await sent(t)
  const read = async () => storyText(await tellPayout(ledger.db, KEY, config.sealing))
  assert.match(await read(), /attempts\n.*by process process-7.*\n +gateway account not recorded\n/)
  const account = {
    accountId: 'a1',
    baseUrl: 'https://pay.example/v2',
    mchId: '1000100',
    dialectName: 'ours',
  }
  await ledger.db.run(keepSettings, {
    ...{ ...account, merchantId: 'acme', settingsHash: 'h', keyFingerprint: 'fingerprint' },
  })
  assert.match(await read(), /\n +to mchId 1000100 at pay\.example \(dialect ours, account a1\)\n/)
  const { attempts } = await tellPayout(ledger.db, KEY, config.sealing)
  const [{ accountId, baseUrl, mchId, dialectName }] = attempts as [Attempt]
  assert.deepEqual({ accountId, baseUrl, mchId, dialectName }, account)
  assert.doesNotMatch(JSON.stringify(attempts), /fingerprint/)
})

test('the text shows who gets how much in rupees, and what was exchanged on the wire', async (t) => {
  const { ledger, config } = await sent(t)
  const text = storyText(await tellPayout(ledger.db, KEY, config.sealing))
  assert.match(text, /₹50,000\.00 to account ••••6789, IFSC HDFC0001234/)
  assert.match(
    text,
    /v3 {2}submitting → processing {2}by APPLY\n.*request {3}accountNo=••••6789\n.*retCode=SUCCESS\n.*HTTP 200, 7 ms/,
  )
  assert.match(
    text,
    /anomalies\n.*amount-mismatch: the gateway says 200 {2}by CALLBACK {2}\([\da-f-]{36}\)\n.*callback {2}amount=200/,
  )
})

test('bank details are never shown whole, neither to people nor to programs', async (t) => {
  const { ledger, config } = await sent(t)
  await accepted(ledger, config, [command('to-vpa', { ifsc: null, vpa: 'asha.rao@okaxis' })])
  for (const payoutId of ['p-1', 'to-vpa']) {
    const story = await tellPayout(ledger.db, { merchantId: 'acme', payoutId }, config.sealing)
    const json = JSON.stringify(story, (_, value: unknown) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
    for (const secret of SECRETS) {
      assert.ok(!storyText(story).includes(secret), `${secret} is in the text of ${payoutId}`)
      assert.ok(!json.includes(secret), `${secret} is in the JSON of ${payoutId}`)
    }
  }
})

test('a payout whose key is lost is shown all the same, without its beneficiary', async (t) => {
  const { ledger } = await sent(t)
  const story = await tellPayout(ledger.db, KEY, {
    current: 1,
    keys: new Map([[1, createSecretKey(randomBytes(32))]]),
  })
  assert.equal(story.beneficiary, null)
  assert.match(
    storyText(story),
    /₹50,000\.00 to a beneficiary whose bank details the current ENCRYPTION_KEYS do not decrypt/,
  )
})

test('the story shows the reference unless it holds a bank detail, and no fee for a payout that failed', async (t) => {
  const { ledger, config } = await testLedger(t)
  const failing = command('failing', { metadata: { reference: 'EMP000007' } })
  const leaking = command('leaking', { metadata: { reference: 'E-50100123456789' } })
  const shortened = command('shortened', {
    ...{ accountNo: '050100123456789', metadata: { reference: '50100123456789' } },
  })
  await accepted(ledger, config, [failing, leaking, shortened])
  await decided(ledger, 'failing', submit)
  await decided(ledger, 'failing', accept)
  const text = async (payoutId: string) =>
    storyText(await tellPayout(ledger.db, { merchantId: 'acme', payoutId }, config.sealing))
  assert.match(await text('failing'), /batch +november, row 1, reference EMP000007\n(.*\n)* +fee +₹5\.00\n/)
  await decided(ledger, 'failing', (before) => ({
    change: {
      before,
      after: become(before, 'failed', { reason: 'failed' }),
      source: 'QUERY',
      exchange: null,
    },
  }))
  assert.doesNotMatch(await text('failing'), /fee/)
  assert.match(await text('failing'), /→ failed {2}by QUERY/)
  for (const payoutId of ['leaking', 'shortened'])
    assert.match(await text(payoutId), /batch +november, row 1\n/)
})

test('a row that arrived again with another amount is named below the list of its batch, and in its own story', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('p-1', { rowNumber: 7 }), command('p-2')])
  await accepted(ledger, config, [command('p-1', { rowNumber: 7, amount: paise(100n) })])
  const asked = { merchantId: 'acme', batchId: 'november', states: ['queued' as const], limit: 9 }
  assert.match(
    listText(await ledger.db.run(payoutsOfBatch, asked)),
    /\n! row 7, p-1: came again with other content, which payoutd does not pay \(payoutd payout show p-1\)$/,
  )
  const story = storyText(await tellPayout(ledger.db, KEY, config.sealing))
  assert.match(story, /\n +came again +with other content, which payoutd does not pay: see anomalies below\n/)
  for (const amount of [100n, 100n, 200n])
    await accepted(ledger, config, [command('p-1', { rowNumber: 7, amount: paise(amount) })])
  assert.match(
    listText(await ledger.db.run(payoutsOfBatch, asked)),
    /p-1: came again with other content 4 times, which payoutd does not pay/,
  )
})

test('stories and lists show from when on a payout may be sent, and until when', async (t) => {
  const { ledger, config } = await testLedger(t)
  const [notBefore, deadline] = [Date.UTC(2090, 2, 31), Date.UTC(2090, 3, 2)]
  await accepted(ledger, config, [command('p-1', { notBefore, deadline })])
  const story = storyText(await tellPayout(ledger.db, KEY, config.sealing))
  assert.match(story, /\n +not before +2090-03-31.*\n +deadline +2090-04-02/)
  const list = listText(await payoutsInStates(ledger.db, { ...KEY, states: ['held'], limit: 1 }))
  assert.match(list, /NOT BEFORE +DEADLINE\n.*held \(schedule\) .* 2090-03-31.* 2090-04-02/)
})

test('a list shows since when a payout is in its state, not when payoutd last asked the gateway about it', async (t) => {
  const { ledger, config } = await testLedger(t)
  await accepted(ledger, config, [command('p-1')])
  await decided(ledger, 'p-1', submit)
  await decided(ledger, 'p-1', accept)
  const asked = (before: Payout): Decision => ({
    change: { before, after: { ...before, queries: before.queries + 1 }, source: 'QUERY', exchange: null },
  })
  await setTimeout(2) // the comparison is in whole milliseconds
  await decided(ledger, 'p-1', asked)
  const { history } = await tellPayout(ledger.db, KEY, config.sealing)
  const [listed] = await payoutsInStates(ledger.db, { ...KEY, states: ['processing'], limit: 1 })
  assert.ok(listed?.since)
  assert.equal(listed.since, history.at(-1)?.at)
  assert.ok(listed.updatedAt > listed.since)
  assert.match(listText([{ ...listed, since: Date.UTC(2026, 10, 2) }]), /processing +2026-11-02/)
})
