import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, anomaliesOf, brokenVersions, upsertMerchant } from '../../../test/ledger.ts'
import type { WrittenMessage } from '../../../test/lost-ledger.ts'
import { outboxMessages } from '../../../test/outbox-messages.ts'
import { AMOUNT, besideSandbox } from '../../../test/reconcile.ts'
import { recoveryDeps } from '../../../test/recovery-deps.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import type { Decision, Payout } from '../../domain/payout/payout.ts'
import { type Resolution, resolve } from '../../domain/payout/resolve.ts'
import { become, change } from '../../domain/payout/transition.ts'
import type { TopicRecord } from '../../platform/kafka/records.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { tellPayout } from '../../queries/payout-story.ts'
import { evidenceOf, lastWord } from '../../queries/review.ts'
import { claim } from '../../stages/dispatch/claim.ts'
import { balanceWatermark as markBalance, saveBalance } from '../../stages/dispatch/sql/funds.ts'
import { lastWordText } from '../../views/review-text.ts'
import { storyText } from '../../views/story-text.ts'
import { cancelPayouts } from '../cancel-payouts.ts'
import { decided, submit } from '../operations.fixture.ts'
import { releasePayouts } from '../release-payouts.ts'
import { reversePayout } from '../reversal.ts'
import type { AskedAccount } from './accounts.ts'
import { readBackPublished } from './read-back-published.ts'
import { fence, listOpen, lowerAfterRecovery, queryOpen } from './recovery.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2, duplicatesRefused: true }
const WHO = { by: 'asha', reason: 'disk lost' }
const ORDER = { amount: paise(AMOUNT) }

const outbox = sql<
  object,
  WrittenMessage
>`select topic, key, event_id, value from ${outboxMessages} order by position, n`
const forgetMessages = sql<object>`delete from outbox`
const current = sql<object, Pick<Payout, 'state' | 'version' | 'attempt' | 'utr'>>`
  select state, version, attempt, utr from payouts where payout_id = 'p'`
const requests = sql<object, { cancelRequest: string | null }>`
  select cancel_request from payouts where payout_id = 'p'`
const paidAt = sql<object, { paidAt: number }>`select paid_at from payouts where payout_id = 'p'`
/** Back to when intake had just stored it. */
const setBack = sql<object>`
  update payouts set state = 'queued', reason = null, version = 1, attempt = 0, account_id = null, doubted = false,
    turned_away = false, cancel_request = null, unknown_since = null, fee = null, utr = null, ready = true, due_at = deadline
  where payout_id = 'p'`
const forgetHistory = sql<object>`delete from history where payout_id = 'p' and version is distinct from 1`
const hold = sql<object>`update payouts set state = 'held', reason = 'duplicate', ready = false where payout_id = 'p'`
const otherRound = sql<object>`update merchants set recovery_round = recovery_round + 1, recovery_began = null`
const forgetAttempts = sql<object>`delete from attempts`

/** A payout `p`, whose story was published and then lost, and another order that the gateway is known to have. */
async function world(t: TestContext) {
  const beside = await besideSandbox(t)
  const { ledger, db, codec, client, accountId, config, orderNo } = beside
  await accepted(ledger, config, [command('p', ORDER), command('known', ORDER)])
  const pay = (payoutId: string) =>
    client.apply(
      { ...command(payoutId, ORDER), mchOrderNo: orderNo(payoutId), notifyUrl: 'http://127.0.0.1:9/never' },
      { mayStillSend: () => true },
    )
  await pay('known')

  /** Keeps the messages, and sets the ledger back. */
  async function restore(): Promise<WrittenMessage[]> {
    const published = await db.run(outbox, {})
    for (const statement of [setBack, forgetHistory, forgetAttempts, forgetMessages])
      await db.run(statement, {})
    return published
  }

  async function askOnce(
    published: readonly WrittenMessage[],
    queryPolicy = POLICY,
    beforeAsking: () => Promise<void> = () => Promise.resolve(),
    query: AskedAccount['query'] = (mchOrderNo) => client.query({ mchOrderNo }),
  ) {
    const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
    assert.ok(raised)
    await listOpen(db, raised)
    await readBackPublished(['acme'], {
      ledger,
      codec,
      async readTopic(topic, onRecord) {
        for (const { key, value } of published.filter((each) => each.topic === topic))
          await onRecord({ key: Buffer.from(key), value } as TopicRecord)
      },
    })
    await beforeAsking()
    const account = {
      ...{ ...ACCOUNT, accountId, queryPolicy, query },
      presenceCheck: { found: () => undefined, holds: async () => true },
    }
    await queryOpen(raised, { ...recoveryDeps(), ledger, accounts: [account], who: WHO })
    return lowerAfterRecovery(raised, WHO, ledger)
  }

  async function recover(...given: Parameters<typeof askOnce>) {
    assert.equal((await askOnce(...given)).kind, 'recovered')
  }

  /** The payouts that dispatch would send now. */
  async function wave(): Promise<string[]> {
    await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    const [mark] = await db.run(markBalance, { merchantId: 'acme' })
    assert.ok(mark)
    await db.run(saveBalance, { merchantId: 'acme', available: 10n ** 12n, ...mark })
    const claimed = await claim(ledger, {
      ...{
        merchantId: 'acme',
        atMost: 9,
        owner: 'me',
        leaseMs: 60_000,
        account: { ...ACCOUNT, accountId },
      },
      ...{ sealing: config.sealing, fingerprintKey: config.fingerprintKey },
      limits: { maxInFlight: 64, ratePerSecond: null },
    })
    return claimed.wave.map(({ payout }) => payout.payoutId)
  }

  async function told(messages: readonly WrittenMessage[]): Promise<string[]> {
    const of = messages.filter(({ key, topic }) => key === 'acme:p' && !topic.endsWith('anomalies'))
    return Promise.all(
      of.map(async ({ value }) => {
        const decoded = await codec.decode(value)
        assert.ok(decoded.kind === 'decoded')
        const { version, status, utr } = decoded.value as { version: number; status?: string; utr?: string }
        return `${decoded.name.split('.').at(-1)} v${version} ${[status, utr].filter(Boolean).join(' ')}`.trim()
      }),
    )
  }

  return {
    ...beside,
    pay: () => pay('p'),
    restore,
    askOnce,
    recover,
    wave,
    published: async () => told(await db.run(outbox, {})),
    now: async () => (await db.run(current, {}))[0],
    step: (decide: (payout: Payout, now: number) => Decision) => decided(ledger, 'p', decide),
  }
}

type World = Awaited<ReturnType<typeof world>>

async function decidedByPerson({ step }: World, resolution: Resolution): Promise<void> {
  await step(submit)
  await step((p) => change(p, become(p, 'unknown', { reason: 'timeout', unknownSince: 1 }), 'APPLY', {}))
  await step((p) => change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', {}))
  await step((p, now) => {
    const decision = resolve(p, resolution, WHO, now)
    return 'change' in decision ? decision : assert.fail(decision.refused.kind)
  })
}

/** The gateway says that the attempt is not paid, and has no order of it. */
async function unpaid({ step }: World, code: string, kind: 'refused' | 'retry-later'): Promise<void> {
  const answer = { kind, code, message: 'day limit', balanceShort: false, exchange: {} }
  await step((p, now) => DECISIONS.recordApply(p, p.attempt, answer, POLICY, now))
  const asked = { presence: true }
  for (const _ of [1, 2])
    await step((p, now) => DECISIONS.recordAbsence(p, {}, { ...asked, askedAt: now + 60_000 }, POLICY, now))
}

const ENDS: [
  name: string,
  end: (world: World) => Promise<void>,
  state: Pick<Payout, 'state' | 'version' | 'attempt' | 'utr'>,
][] = [
  [
    'a person cancelled it',
    async ({ ledger }) => {
      await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger)
    },
    { state: 'cancelled', version: 2, attempt: 0, utr: null },
  ],
  [
    'its time was over',
    ({ step }) => step((p) => DECISIONS.onTimer(p, POLICY, p.deadline) as Decision),
    { state: 'cancelled', version: 2, attempt: 0, utr: null },
  ],
  [
    'the gateway refused it',
    async (world) => {
      await world.step(submit)
      await unpaid(world, 'LIMIT', 'refused')
    },
    { state: 'failed', version: 4, attempt: 1, utr: null },
  ],
  [
    'a person called it failed',
    (world) => decidedByPerson(world, { kind: 'failed' }),
    { state: 'failed', version: 5, attempt: 1, utr: null },
  ],
  [
    'a person called it paid',
    (world) => decidedByPerson(world, { kind: 'paid', utr: 'BANKSAYS1' }),
    { state: 'paid', version: 5, attempt: 1, utr: 'BANKSAYS1' },
  ],
]

describe('an end that was published and lost stays the end: nobody receives another one, and nothing is sent', () => {
  for (const duplicatesRefused of [true, false]) {
    for (const [name, end, state] of ENDS) {
      test(`${name}${duplicatesRefused ? '' : ', where duplicates may be paid'}`, async (t) => {
        const lost = await world(t)
        await end(lost)
        await lost.recover(await lost.restore(), { ...POLICY, duplicatesRefused })
        assert.deepEqual(await lost.now(), state)
        assert.deepEqual(await lost.wave(), [])
        assert.deepEqual(await lost.published(), [])
        assert.deepEqual(await brokenVersions(lost.ledger), [])
        assert.deepEqual(await anomaliesOf(lost.ledger), [])
      })
    }
  }
})

describe('an end that was published only as a result is the end as well, and is published as an event', () => {
  for (const duplicatesRefused of [true, false]) {
    for (const [name, end, state] of ENDS) {
      test(`${name}${duplicatesRefused ? '' : ', where duplicates may be paid'}`, async (t) => {
        const lost = await world(t)
        await end(lost)
        const results = (await lost.restore()).filter(({ topic }) => topic.endsWith('results'))
        assert.equal(results.length, 1)
        await lost.recover(results, { ...POLICY, duplicatesRefused })
        assert.deepEqual(await lost.now(), state)
        assert.deepEqual(await lost.wave(), [])
        assert.deepEqual(await lost.published(), [`PayoutEvent v${state.version}`])
        assert.deepEqual(await anomaliesOf(lost.ledger), [])
      })
    }
  }
})

test('a gateway report against it is an anomaly, and changes nothing', async (t) => {
  const lost = await world(t)
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
  const published = await lost.restore()
  await lost.pay()
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'cancelled', version: 2, attempt: 1, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['contradiction'])
  assert.deepEqual(await lost.published(), [])
})

test('an end whose result was not published before the loss is published with what the gateway reports', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.pay()
  const answer = await lost.ended(lost.orderNo('p'))
  await lost.settle(lost.orderNo('p'), answer)
  const published = await lost.restore()
  await lost.recover(published.filter(({ topic }) => !topic.endsWith('results')))
  assert.deepEqual(await lost.now(), { state: 'paid', version: 3, attempt: 1, utr: answer.report.utr })
  assert.deepEqual(await lost.published(), [`PayoutResult v3 PAID ${answer.report.utr}`])
})

test('that result is published once, however often payoutd asks the gateway', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.pay()
  const answer = await lost.ended(lost.orderNo('p'))
  await lost.settle(lost.orderNo('p'), answer)
  const published = (await lost.restore()).filter(({ topic }) => !topic.endsWith('results'))
  const { kind } = await lost.askOnce(published, POLICY, undefined, async (mchOrderNo) => {
    await lost.db.run(otherRound, {})
    return { ...answer, report: { ...answer.report, mchOrderNo, utr: null } }
  })
  assert.equal(kind, 'outdated')
  await lost.recover(published)
  assert.deepEqual(await lost.published(), ['PayoutResult v3 PAID'])
})

test('a return that a person confirms before that result was published is published after it', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.pay()
  const answer = await lost.ended(lost.orderNo('p'))
  await lost.settle(lost.orderNo('p'), answer)
  const published = (await lost.restore()).filter(({ topic }) => !topic.endsWith('results'))
  await lost.recover(published, POLICY, async () => {
    const returned = { ...answer.report, status: 'failed', utr: null, errorMessage: 'returned' } as const
    await lost.step((p, now) => DECISIONS.applyEvidence(p, returned, 'CALLBACK', POLICY, now))
    const request = { merchantId: 'acme', payoutId: 'p', anomalyId: null, shown: null, ...WHO }
    assert.equal((await reversePayout(request, lost.ledger)).kind, 'reversed')
  })
  assert.deepEqual(await lost.published(), ['PayoutResult v3 PAID', 'PayoutReversed v3'])
})

const paidByIt = sql<object>`update payouts set state = 'paid', utr = 'banksays1', due_at = null where payout_id = 'known'`

test('an end that was read back with a UTR that another payout has by now is reported', async (t) => {
  const lost = await world(t)
  await decidedByPerson(lost, { kind: 'paid', utr: 'BANKSAYS1' })
  const published = await lost.restore()
  await lost.db.run(paidByIt, {})
  for (const _ of [1, 2]) await lost.recover(published)
  assert.deepEqual(await anomaliesOf(lost.ledger), ['utr-of-two'])
})

test('if the ledger has gone on under the version of the published end, a person decides', async (t) => {
  const lost = await world(t)
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
  const published = await lost.restore()
  await lost.step((p) => change(p, become(p, 'held', { reason: 'schedule', dueAt: p.deadline }), 'CLOCK', {}))
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'review', version: 3, attempt: 0, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  assert.deepEqual(await lost.wave(), [])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
})

test('if the ledger sends under the version of the published end, a person decides, and no request to cancel is invented', async (t) => {
  const lost = await world(t)
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
  const published = await lost.restore()
  await lost.step(submit)
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'review', version: 3, attempt: 1, utr: null })
  assert.deepEqual(await lost.db.run(requests, {}), [{ cancelRequest: null }])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  await lost.step((p, now) =>
    DECISIONS.recordApply(p, 1, { kind: 'not-sent', reason: 'refused', exchange: {} }, POLICY, now),
  )
  assert.deepEqual([(await lost.now())?.state, await lost.wave()], ['review', []])
})

test('an end that was read back happened at the time at which it was published', async (t) => {
  const lost = await world(t)
  await decidedByPerson(lost, { kind: 'paid', utr: 'BANKSAYS1' })
  const at = await lost.db.run(paidAt, {})
  const published = await lost.restore()
  await lost.recover(published)
  assert.deepEqual([await lost.db.run(paidAt, {}), at.length], [at, 1])
})

test('a payout that was in review because of a request to cancel is not sent once more', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
  await unpaid(lost, 'TOO_FAST', 'retry-later')
  await lost.recover(await lost.restore())
  assert.deepEqual(await lost.now(), { state: 'review', version: 5, attempt: 1, utr: null })
  assert.deepEqual(await lost.wave(), [])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
})

test('a payout that was cancelled again before the recovery, when its command was read anew, ends as published', async (t) => {
  const lost = await world(t)
  const request = { merchantId: 'acme', payoutIds: ['p'], ...WHO }
  await cancelPayouts(request, lost.ledger)
  const published = await lost.restore()
  await fence(lost.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
  await cancelPayouts(request, lost.ledger)
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'cancelled', version: 2, attempt: 0, utr: null })
  assert.deepEqual(await lost.published(), [])
  assert.deepEqual(await brokenVersions(lost.ledger), [])
})

test('if Kafka no longer has part of its story, versions continue above the highest published one', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'unknown', { reason: 'timeout', unknownSince: 1 }), 'APPLY', {}))
  const published = await lost.restore()
  await lost.recover(
    [...published.filter(({ key }) => key !== 'acme:p'), published.at(-1) ?? assert.fail()],
    { ...POLICY, duplicatesRefused: false },
  )
  assert.deepEqual(await lost.now(), { state: 'review', version: 4, attempt: 1, utr: null })
})

test('a review under a version that was published as something else is published again, above it', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  const published = await lost.restore()
  await lost.step((p) => change(p, become(p, 'review', { reason: 'never-sent' }), 'CALLBACK', {}))
  await lost.recover(published, POLICY, async () => {
    assert.deepEqual(await lost.now(), { state: 'review', version: 3, attempt: 1, utr: null })
    assert.deepEqual(await lost.published(), ['PayoutEvent v2', 'PayoutEvent v3'])
  })
})

test('a held payout under a version that was published as released is published again, above it', async (t) => {
  const lost = await world(t)
  await lost.db.run(hold, {})
  await releasePayouts(
    { merchantId: 'acme', payoutIds: ['p'], ...WHO, payPeriod: 'month', known: null, shown: null },
    lost.ledger,
  )
  const published = await lost.restore()
  await lost.db.run(hold, {})
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'held', version: 3, attempt: 0, utr: null })
  assert.deepEqual(await lost.published(), ['PayoutEvent v3'])
})

test('a payout that waits again, was published as sent and is not at the gateway is published again, above it', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'unknown', { reason: 'timeout', unknownSince: 1 }), 'APPLY', {}))
  await lost.recover(await lost.restore(), POLICY, async () => assert.deepEqual(await lost.published(), []))
  assert.deepEqual(await lost.now(), { state: 'queued', version: 4, attempt: 1, utr: null })
  assert.deepEqual(await lost.published(), ['PayoutEvent v4'])
})

test('a payout that was sent again, and of whose lost attempt an end was published under its version, is published in review, above it', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await unpaid(lost, 'LIMIT', 'refused')
  const published = await lost.restore()
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'unknown', { reason: 'timeout', unknownSince: 1 }), 'APPLY', {}))
  await lost.step((p) => change(p, become(p, 'processing', { dueAt: p.deadline }), 'APPLY', {}))
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'review', version: 6, attempt: 2, utr: null })
  assert.deepEqual(await lost.published(), [
    'PayoutEvent v2',
    'PayoutEvent v3',
    'PayoutEvent v4',
    'PayoutEvent v5',
    'PayoutEvent v6',
  ])
  assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
})

describe('a review from which a person had sent the payout again is published again, with what the gateway reports', () => {
  for (const duplicatesRefused of [true, false]) {
    test(duplicatesRefused ? 'where duplicates are refused' : 'where duplicates may be paid', async (t) => {
      const lost = await world(t)
      const review = async () => {
        await lost.step(submit)
        await lost.step((p) => change(p, become(p, 'review', { reason: 'expired' }), 'CLOCK', {}))
      }
      await review()
      await lost.step((p) =>
        change(p, become(p, 'queued', { reason: 'resent', doubted: true }), 'OPERATOR', {}),
      )
      await lost.step(submit)
      await lost.step((p) => change(p, become(p, 'processing', { dueAt: p.deadline }), 'APPLY', {}))
      const published = await lost.restore()
      await review()
      await lost.db.run(forgetMessages, {})
      await lost.recover(published, { ...POLICY, duplicatesRefused })
      assert.deepEqual(await lost.now(), { state: 'review', version: 7, attempt: 3, utr: null })
      assert.deepEqual(await lost.published(), ['PayoutEvent v7'])
      const evidence = await evidenceOf(lost.db, {
        ...{ merchantId: 'acme', payoutId: 'p', orderNo: lost.orderNo('p') },
      })
      assert.equal(lastWord(evidence)?.source, 'QUERY')
    })
  }
})

describe('a payout that was cancelled while fenced, but published as sent, goes to review', () => {
  for (const duplicatesRefused of [true, false]) {
    test(`and the recovery ends${duplicatesRefused ? '' : ', where duplicates may be paid'}`, async (t) => {
      const lost = await world(t)
      for (const _ of [1, 2]) {
        await lost.step(submit)
        await unpaid(lost, 'TOO_FAST', 'retry-later')
      }
      const published = await lost.restore()
      await fence(lost.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
      await lost.recover(published, { ...POLICY, duplicatesRefused })
      const { state, attempt } = (await lost.now()) ?? {}
      assert.deepEqual([state, attempt], ['review', 2])
      assert.deepEqual(await lost.wave(), [])
    })
  }
})

test('of a restored attempt, the ledger does not claim when it was sent, or that the gateway never reported anything', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'processing', { dueAt: p.deadline }), 'APPLY', {}))
  await lost.recover(await lost.restore(), POLICY, async () => {
    const key = { merchantId: 'acme', payoutId: 'p' }
    const evidence = await evidenceOf(lost.db, { ...key, orderNo: lost.orderNo('p') })
    assert.equal(
      lastWordText(lastWord(evidence), evidence),
      'the ledger was restored, and lacks what the gateway reported on it before that',
    )
    const text = storyText(await tellPayout(lost.db, key, lost.config.sealing))
    assert.match(text, /1 {2}order \S+, lost with the ledger, restored by payoutd recover \S+ \S+Z\n/)
  })
})

test('the time at which a callback was read back does not count as a report of the gateway', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'processing', { dueAt: p.deadline }), 'CALLBACK', {}))
  await lost.recover(await lost.restore(), POLICY, async () => {
    const key = { merchantId: 'acme', payoutId: 'p', orderNo: lost.orderNo('p') }
    assert.equal(lastWord(await evidenceOf(lost.db, key)), null)
  })
})
