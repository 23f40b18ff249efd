import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT, HAS_IT } from '../../../test/lost-ledger.ts'
import { CURRENT, FORMER } from '../../../test/two-accounts.ts'
import { paise } from '../../domain/money.ts'
import { become } from '../../domain/payout/transition.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { decided } from '../operations.fixture.ts'
import { readBackPublished } from './read-back-published.ts'
import { listOpen } from './recovery.ts'
import {
  AP1,
  AP2,
  acceptedAs,
  exchange,
  makeReady,
  monthsPass,
  NOT_SENT,
  reported,
  type SetBack,
  setBackLedger,
  TIMEOUT,
} from './set-back.fixture.ts'

const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', '', '')`
const ORDERS = [
  ['before', true],
  ['after', false],
] as const

for (const [end, fail] of [
  ['failed', async ({ refuse }: SetBack) => refuse()],
  ['cancelled', async ({ say, cancel }: SetBack) => say(NOT_SENT).then(cancel)],
] as const)
  test(`a payout that was published as ${end} and sent since under the same version is paid once the gateway says so, and a second recovery changes nothing`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await fail(lost)
    await lost.lose()
    await lost.sendAs2()
    await lost.recover()
    assert.deepEqual(await lost.state(), ['paid', null])
    const after = [await lost.now(), await lost.publishedLines(), await anomaliesOf(lost.ledger)]
    assert.deepEqual(after.at(-1), ['end-published'])
    await lost.recover()
    assert.deepEqual([await lost.now(), await lost.publishedLines(), await anomaliesOf(lost.ledger)], after)
  })

for (const [how, lostAnswer, since] of [
  ['refused', TIMEOUT, ({ refuse }: SetBack) => refuse()],
  ['not sent, and then cancelled', TIMEOUT, ({ say, cancel }: SetBack) => say(NOT_SENT).then(cancel)],
  [
    'reported as failed',
    acceptedAs('AP1'),
    ({ say, callBack }: SetBack) =>
      say(acceptedAs('AP2')).then(() => callBack({ status: 'failed', agentpayOrderId: 'AP2', utr: null })),
  ],
] as const)
  test(`a payout that was sent under the version of a lost attempt, and was ${how}, goes to a person`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.say(lostAnswer)
    await lost.lose()
    await lost.sendAs2()
    await since(lost)
    await lost.recover()
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  })

test('a payout that was cancelled before it was sent, and that a lost ledger had sent, goes to a person', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(TIMEOUT)
  await lost.lose()
  await lost.read()
  await lost.cancel()
  await lost.recover()
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
})

for (const [answer, state] of [
  [HAS_IT, ['paid', null]],
  [ABSENT, ['review', 'proved-absent']],
] as const)
  test(`a payout of which a lost acceptance was published, and no attempt of the ledger left, is doubted: the gateway says ${answer.kind}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.say(acceptedAs('AP1'))
    await lost.lose()
    await lost.sendAs2()
    await lost.say(NOT_SENT)
    await lost.recover(answer)
    assert.deepEqual(await lost.state(), state)
    assert.equal((await lost.known())?.doubted, true)
  })

for (const [when, isLate] of [
  ['before', false],
  ['after', true],
] as const)
  test(`a payout of which Kafka kept only that an order was shown, and whose command comes ${when} the recovery, is doubted`, async (t) => {
    const lost = await setBackLedger(t)
    const { events } = lost.ledger.topics
    await lost.sendAs2()
    await lost.say(TIMEOUT)
    await lost.sayAbsent()
    await lost.callBack({ amount: paise(49_000_00n) })
    assert.deepEqual(await lost.state(), ['review', 'order-shown'])
    await lost.lose((message, _at, all) => message === all.findLast(({ topic }) => topic === events))
    if (!isLate) await lost.read()
    await lost.recover(ABSENT)
    if (isLate) await lost.read()
    assert.deepEqual(await lost.state(), ['review', isLate ? 'published-before' : 'order-shown'])
    assert.deepEqual(await lost.known(), { accountId: null, doubted: true })
  })

test('a payout that was sent in vain under the version of a lost attempt is not sent again when the gateway has no order', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(TIMEOUT)
  await lost.lose()
  await lost.sendAs2()
  await lost.say(NOT_SENT)
  await lost.recover(ABSENT)
  assert.deepEqual(await lost.state(), ['review', 'proved-absent'])
  await lost.db.run(makeReady, {})
  assert.deepEqual(await lost.wave(), [])
})

test('a published payment of a lost attempt does not end a payout that was sent since to another account, and its return is confirmed there', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2(FORMER)
  for (const account of [FORMER, CURRENT]) await lost.db.run(addSettings, account)
  await lost.say(acceptedAs('AP1'))
  await lost.callBack({}, FORMER)
  await lost.lose()
  await lost.sendAs2(CURRENT)
  await lost.readBack()
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
  assert.deepEqual(await lost.known(), { accountId: null, doubted: true })
  await lost.callBack({}, FORMER)
  assert.deepEqual(await lost.known(), { accountId: FORMER.accountId, doubted: true })
  await lost.callBack({ status: 'failed' }, FORMER)
  assert.equal(await lost.reverse(), 'reversed')
})

test('a failure without a number, after a payment of a lost attempt was published, confirms no return', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  await lost.callBack()
  await lost.lose()
  await lost.sendAs2()
  await lost.readBack()
  await lost.callBack({ status: 'failed', agentpayOrderId: null, utr: null })
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
  assert.equal(await lost.reverse(), 'not-paid')
})

test('a second recovery counts no lost attempt twice, but another one that was sent under the same version', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(TIMEOUT)
  await lost.lose()
  await lost.sendAs2()
  await lost.say(TIMEOUT)
  const other = await lost.published()
  await lost.lose(() => false)
  await lost.sendAs2()
  await lost.recover(ABSENT)
  const after = await lost.now()
  assert.deepEqual(after, ['review 5 2'])
  await lost.recover(ABSENT)
  assert.deepEqual(await lost.now(), after)
  lost.keep(other)
  await lost.recover(ABSENT)
  assert.deepEqual(await lost.now(), ['review 5 3'])
  await lost.recover(ABSENT)
  assert.deepEqual(await lost.now(), ['review 5 3'])
})

for (const [how, state, finish] of [
  ['is under way', 'submitting 20 7', async () => undefined],
  ['has failed', 'failed 22 7', ({ refuse }: SetBack) => refuse()],
] as const)
  test(`a ledger that lost nothing lacks none of the submissions that it published: the payout ${how}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    for (let attempt = 2; attempt <= 7; attempt++) {
      await lost.turnAway()
      await lost.sendAgain()
    }
    await finish(lost)
    assert.equal(await lost.readBack(), 0)
    assert.deepEqual(await lost.now(), [state])
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })

for (const [order, isOwnFirst] of ORDERS) {
  test(`a payout that failed, and whose own story was published ${order} that of a lost attempt, goes to a person and is paid once the gateway says so`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.lose()
    if (isOwnFirst) lost.publishOwnFirst()
    await lost.sendAs2()
    await lost.refuse()
    await lost.recover(ABSENT)
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
    await lost.callBack()
    assert.deepEqual(await lost.state(), ['paid', null])
  })

  test(`a payout that is under way, and whose own story was published ${order} the failure of a lost attempt, goes to a person and is paid once the gateway says so`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.refuse()
    await lost.lose()
    if (isOwnFirst) lost.publishOwnFirst()
    await lost.sendAs2()
    await lost.readBack()
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
    await lost.callBack()
    assert.deepEqual(await lost.state(), ['paid', null])
  })
}

for (const [how, first, second] of [
  ['with two UTRs', AP1, AP2],
  ['without a UTR', { ...AP1, utr: null }, { ...AP2, utr: null }],
  ['of which the lost one has no UTR', { ...AP1, utr: null }, AP2],
  ['of which the later one has no UTR', AP1, { ...AP2, utr: null }],
] as const)
  for (const [order, isOwnFirst] of ORDERS)
    test(`a payout that was paid twice under one version, by two orders ${how}, stays paid, and an anomaly tells, when its own story was published ${order} the lost one`, async (t) => {
      const lost = await setBackLedger(t)
      await lost.sendAs2()
      await lost.callBack(first)
      await lost.lose()
      if (isOwnFirst) lost.publishOwnFirst()
      await lost.sendAs2()
      await lost.callBack(second)
      assert.match(String(await lost.beyond()), /^payout p of acme was published as /)
      await lost.recover()
      assert.deepEqual(await lost.now(), ['paid 3 2'])
      assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
      assert.equal(await lost.beyond(), null)
    })

const FAILED_AP2 = { status: 'failed', agentpayOrderId: 'AP2', utr: null } as const

for (const [when, state, recoverAndFail] of [
  [
    'before',
    ['review', 'end-published'],
    (lost: SetBack) => lost.callBack(FAILED_AP2).then(() => lost.recover(reported(FAILED_AP2))),
  ],
  [
    'after',
    ['processing', null],
    (lost: SetBack) =>
      lost
        .recover(reported({ ...AP2, status: 'processing', utr: null }))
        .then(() => lost.callBack(FAILED_AP2)),
  ],
] as const)
  test(`a payout is not failed if all that Kafka has of its lost attempt is what the ledger did under the same version, and the gateway reports a failure ${when} the recovery`, async (t) => {
    const lost = await setBackLedger(t)
    const { events } = lost.ledger.topics
    await lost.sendAs2()
    await lost.say(acceptedAs('AP1'))
    await lost.lose((message, _at, all) => message === all.findLast(({ topic }) => topic === events))
    await lost.sendAs2()
    await lost.say(acceptedAs('AP2'))
    assert.notEqual(await lost.beyond(), null)
    await recoverAndFail(lost)
    assert.deepEqual(await lost.state(), state)
    await lost.callBack(AP1)
    assert.deepEqual(await lost.state(), ['paid', null])
  })

const accept = ({ say }: SetBack) => say(acceptedAs('AP1'))
const refuse = (lost: SetBack) => lost.refuse()

for (const [how, answers] of [
  ['refused and accepted', [refuse, accept]],
  ['accepted and refused', [accept, refuse]],
] as const)
  test(`a payout that two lost ledgers sent under one version, ${how}, is neither failed nor sent when its command comes after the recovery`, async (t) => {
    const lost = await setBackLedger(t)
    for (const answer of answers) {
      await lost.sendAs2()
      await answer(lost)
      await lost.lose()
    }
    await lost.recover(ABSENT)
    await lost.read()
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    assert.deepEqual(await lost.wave(), [])
    assert.deepEqual(await lost.known(), { accountId: null, doubted: true })
  })

const UNDER_WAY = reported({ ...AP1, status: 'processing', utr: null })

for (const kept of ['the result', 'the result and the last event'] as const)
  test(`a payout that was sent again is not failed by a lost failure of which Kafka has no more than ${kept}`, async (t) => {
    const lost = await setBackLedger(t)
    const { events, results } = lost.ledger.topics
    await lost.sendAs2()
    await lost.refuse()
    await lost.lose(
      (message, _at, all) =>
        message.topic === results ||
        (kept !== 'the result' && message === all.findLast(({ topic }) => topic === events)),
    )
    await lost.sendAs2()
    await lost.recover(UNDER_WAY)
    assert.deepEqual(await lost.state(), ['review', 'end-published'])
    await lost.callBack(AP1)
    assert.deepEqual(await lost.state(), ['paid', null])
  })

test('a payout that failed is a person’s again if one of two lost ledgers has an order under way, and the other one failed it', async (t) => {
  const lost = await setBackLedger(t)
  for (const answer of [accept, refuse]) {
    await lost.sendAs2()
    await answer(lost)
    await lost.lose()
  }
  await lost.sendAs2()
  await lost.refuse()
  await lost.recover(UNDER_WAY)
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
})

test('a payout that was never sent is not cancelled as one lost ledger did, if another one had sent it', async (t) => {
  const lost = await setBackLedger(t)
  const move = (state: 'held' | 'queued', reason: 'duplicate' | null) =>
    decided(lost.ledger, 'p', (before) => ({
      change: { before, after: become(before, state, { reason }), source: 'OPERATOR', exchange },
    }))
  const heldAndReleased = async () => {
    await lost.read()
    await move('held', 'duplicate')
    await move('queued', null)
  }
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  await lost.lose()
  await heldAndReleased()
  await lost.cancel()
  await lost.lose()
  await heldAndReleased()
  await lost.recover(UNDER_WAY)
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
  await lost.callBack(AP1)
  assert.deepEqual(await lost.state(), ['paid', null])
})

for (const end of ['success', 'failed'] as const)
  test(`a ledger that was read back lacks nothing once its history is dropped: the payout is reported as ${end}`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.sendAs2()
    await lost.say(acceptedAs('AP1'))
    await lost.lose()
    await lost.read()
    await lost.recover(UNDER_WAY)
    await lost.callBack({ ...AP1, status: end })
    const all = async () => [await lost.now(), await lost.publishedLines(), await anomaliesOf(lost.ledger)]
    const before = await all()
    await lost.db.run(monthsPass, {})
    assert.equal(await lost.beyond(), null)
    await lost.recover(UNDER_WAY)
    assert.deepEqual(await all(), before)
  })

for (const isExpired of [false, true])
  test(`a paid payout of whose lost attempt Kafka has no more than that it was under way${isExpired ? ' until a person was asked' : ''} stays paid, and an anomaly tells`, async (t) => {
    const lost = await setBackLedger(t)
    const { events } = lost.ledger.topics
    await lost.sendAs2()
    await lost.say(acceptedAs('AP1'))
    if (isExpired)
      await decided(lost.ledger, 'p', (before) => ({
        change: { before, after: become(before, 'review', { reason: 'expired' }), source: 'CLOCK', exchange },
      }))
    await lost.lose((message, _at, all) => message === all.findLast(({ topic }) => topic === events))
    await lost.sendAs2()
    await lost.say(acceptedAs('AP2'))
    await lost.callBack(AP2)
    await lost.recover(reported(AP2))
    assert.deepEqual(await lost.now(), ['paid 4 1'])
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  })

test('a payout that was sent by a lost ledger, and breaks today’s rules, stays rejected, and an anomaly tells', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.lose()
  await lost.readAgain()
  assert.deepEqual(await lost.now(), ['rejected 1 0'])
  await lost.recover(UNDER_WAY)
  assert.deepEqual(await lost.now(), ['rejected 2 0'])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  await lost.recover(UNDER_WAY)
  assert.deepEqual(await lost.now(), ['rejected 2 0'])
})

test('a payment that was returned is the ledger’s own, whatever was published about it', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  await lost.callBack()
  await lost.callBack({ status: 'failed' })
  assert.equal(await lost.reverse(), 'reversed')
  const anomalies = await anomaliesOf(lost.ledger)
  assert.equal(await lost.beyond(), null)
  await lost.readBack()
  assert.deepEqual(await lost.now(), ['paid 4 1'])
  assert.deepEqual(await anomaliesOf(lost.ledger), anomalies)
})

test('a payout that moved while a recovery read what was published is not left to a person: all of it is its own', async (t) => {
  const lost = await setBackLedger(t)
  await listOpen(lost.db, await lost.raise())
  await lost.read()
  await decided(lost.ledger, 'p', (before) => ({
    change: { before, after: become(before, 'held', { reason: 'duplicate' }), source: 'CLOCK', exchange },
  }))
  await readBackPublished(['acme'], lost.topics(await lost.published()))
  assert.deepEqual(await lost.now(), ['held 2 0'])
  assert.deepEqual(await anomaliesOf(lost.ledger), [])
})

for (const [what, hear] of [
  ['the event of a payment', ({ callBack }: SetBack) => callBack(AP1)],
  [
    'that an order was shown',
    ({ callBack }: SetBack) => callBack({ ...AP1, status: 'processing', utr: null }),
  ],
  ['the submission', async () => undefined],
] as const)
  test(`a paid payout of whose lost attempt Kafka has no more than ${what} stays paid, and an anomaly tells`, async (t) => {
    const lost = await setBackLedger(t)
    const { events } = lost.ledger.topics
    await lost.sendAs2()
    await hear(lost)
    await lost.lose(({ topic }) => topic === events)
    await lost.sendAs2()
    await lost.callBack(AP2)
    assert.notEqual(await lost.beyond(), null)
    await lost.recover(reported(AP2))
    assert.deepEqual(await lost.now(), ['paid 3 2'])
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
    assert.equal(await lost.beyond(), null)
  })

test('a payout whose history has lost its beginning, and that was sent under the version of a lost attempt, goes to a person and is paid once the gateway says so', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.refuse()
  await lost.lose()
  await lost.sendAs2()
  await lost.db.run(monthsPass, {})
  assert.notEqual(await lost.beyond(), null)
  await lost.recover(reported({ ...AP1, status: 'failed', utr: null }))
  assert.deepEqual(await lost.state(), ['review', 'end-published'])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  assert.equal(await lost.beyond(), null)
  await lost.callBack(AP2)
  assert.deepEqual(await lost.state(), ['paid', null])
})

test('a recovery after two losses counts both lost attempts, and a second one counts no more', async (t) => {
  const lost = await setBackLedger(t)
  for (let losses = 0; losses < 2; losses++) {
    await lost.sendAs2()
    await lost.lose()
  }
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  const processing = reported({ status: 'processing', utr: null })
  for (let recoveries = 0; recoveries < 3; recoveries++) {
    await lost.recover(processing)
    assert.deepEqual(await lost.now(), ['processing 3 3'])
  }
})
