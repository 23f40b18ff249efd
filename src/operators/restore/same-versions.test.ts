import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, anomaliesOf, payoutsOf } from '../../../test/ledger.ts'
import { ABSENT, HAS_IT, lostLedger, WHO, type WrittenMessage } from '../../../test/lost-ledger.ts'
import { CURRENT, FORMER } from '../../../test/two-accounts.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { paise } from '../../domain/money.ts'
import { recordApply } from '../../domain/payout/record-apply-answer.ts'
import { recordAbsence } from '../../domain/payout/record-query-answer.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { cancelPayouts } from '../cancel-payouts.ts'
import { decided } from '../operations.fixture.ts'
import { reversePayout } from '../reversal.ts'
import { readBackPublished } from './read-back-published.ts'
import { listOpen } from './restore.ts'

const TABLE = { queryAfterMs: [1], graceMs: 0, confirmations: 1, resendWhenAbsent: true }
const KEY = { merchantId: 'acme', payoutId: 'p' }
const exchange = {}
const TIMEOUT: ApplyAnswer = { kind: 'unknown', reason: 'timeout', exchange }
const NOT_SENT: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }
const REFUSED: ApplyAnswer = { kind: 'refused', code: 'LIMIT', message: 'day limit', vouched: true, exchange }
const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: '', balanceShort: false, vouched: true, exchange },
}
const acceptedAs = (agentpayOrderId: string): ApplyAnswer => ({
  ...{ kind: 'accepted', agentpayOrderId, fee: null, status: 'processing', exchange },
})

const addSettings = sql<{ accountId: string; settingsHash: string }>`
  insert into gateway_settings (merchant_id, settings_hash, account_id, base_url, mch_id, key_fingerprint, dialect_name)
  values ('acme', ${'settingsHash'}, ${'accountId'}, '', '', '', '')`
const makeReady = sql<object>`update payouts set ready = true where state = 'queued'`
const known = sql<object, { accountId: string | null; doubted: boolean }>`
  select account_id, doubted from payouts where payout_id = 'p'`

type Lost = Awaited<ReturnType<typeof world>>

async function world(t: TestContext) {
  const lost = await lostLedger(t)
  const { ledger, db } = lost
  const published: WrittenMessage[] = []
  const all = async () => [...published, ...(await lost.published())]
  return {
    ...lost,
    /** It reads the command of `p` (again), and sends it as version 2. */
    async sendAs2(account = ACCOUNT) {
      await lost.read()
      assert.equal((await lost.wave(account)).length, 1)
      assert.deepEqual(await lost.now(), ['submitting 2 1'])
    },
    async sendAgain() {
      await db.run(makeReady, {})
      assert.equal((await lost.wave()).length, 1)
    },
    say: (answer: ApplyAnswer) =>
      decided(ledger, 'p', (payout, now) => recordApply(payout, payout.attempt, answer, TABLE, now)),
    sayAbsent: () =>
      decided(ledger, 'p', (payout, now) =>
        recordAbsence(payout, {}, { askedAt: now, isPresenceChecked: true }, TABLE, now),
      ),
    cancel: () => cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger),
    /** The ledger loses all; Kafka keeps what `isKept` says. */
    async lose(isKept: (message: WrittenMessage, at: number, all: WrittenMessage[]) => boolean = () => true) {
      published.push(...(await lost.lose()).filter(isKept))
    },
    /** Kafka has these besides. */
    keep: (messages: readonly WrittenMessage[]) => published.push(...messages),
    recover: async (answer = HAS_IT) => lost.recover(await all(), answer),
    /** Returns how many payouts lacked something. */
    async readBack(): Promise<number> {
      await listOpen(db, await lost.raise())
      return readBackPublished(['acme'], lost.topics(await all()))
    },
    state: async () => (await payoutsOf(ledger)).map(({ state, reason }) => [state, reason])[0],
    known: async () => (await db.run(known, {}))[0],
    reverse: async () => (await reversePayout({ ...KEY, ...WHO, anomalyId: null, shown: null }, ledger)).kind,
  }
}

for (const [end, fail] of [
  ['failed', async ({ say }: Lost) => say(REFUSED)],
  ['cancelled', async ({ say, cancel }: Lost) => say(NOT_SENT).then(cancel)],
] as const)
  test(`a payout that was published as ${end} and sent since under the same version is paid once the gateway says so, and a second recovery changes nothing`, async (t) => {
    const lost = await world(t)
    await lost.sendAs2()
    await fail(lost)
    await lost.lose()
    await lost.sendAs2()
    await lost.recover()
    assert.deepEqual(await lost.state(), ['paid', null])
    const after = [await lost.now(), await lost.told(), await anomaliesOf(lost.ledger)]
    assert.deepEqual(after.at(-1), ['end-published'])
    await lost.recover()
    assert.deepEqual([await lost.now(), await lost.told(), await anomaliesOf(lost.ledger)], after)
  })

for (const [how, lostAnswer, since] of [
  ['refused', TIMEOUT, ({ say }: Lost) => say(REFUSED)],
  ['not sent, and then cancelled', TIMEOUT, ({ say, cancel }: Lost) => say(NOT_SENT).then(cancel)],
  [
    'reported as failed',
    acceptedAs('AP1'),
    ({ say, callBack }: Lost) =>
      say(acceptedAs('AP2')).then(() => callBack({ status: 'failed', agentpayOrderId: 'AP2', utr: null })),
  ],
] as const)
  test(`a payout that was sent under the version of a lost attempt, and was ${how}, goes to a person`, async (t) => {
    const lost = await world(t)
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
  const lost = await world(t)
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
    const lost = await world(t)
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
    const lost = await world(t)
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
  const lost = await world(t)
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
  const lost = await world(t)
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
  const lost = await world(t)
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
  const lost = await world(t)
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
  ['is under way', 'submitting 14 7', async () => undefined],
  ['has failed', 'failed 15 7', ({ say }: Lost) => say(REFUSED)],
] as const)
  test(`a ledger that lost nothing lacks none of the submissions that it published: the payout ${how}`, async (t) => {
    const lost = await world(t)
    await lost.sendAs2()
    for (let attempt = 2; attempt <= 7; attempt++) {
      await lost.say(LATER)
      await lost.sendAgain()
    }
    await finish(lost)
    assert.equal(await lost.readBack(), 0)
    assert.deepEqual(await lost.now(), [state])
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })
