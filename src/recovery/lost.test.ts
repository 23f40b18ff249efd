import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { accepted, anomaliesOf, brokenVersions, openPurse } from '../../test/ledger.ts'
import { AMOUNT, besideSandbox } from '../../test/reconcile.ts'
import { claim } from '../dispatch/claim.ts'
import { beforeAsking, keepBalance } from '../dispatch/sql/purse.ts'
import { cancelPayouts } from '../operations/cancel-payouts.ts'
import { decided, submit } from '../operations/operations.fixture.ts'
import { command } from '../payout/command.fixture.ts'
import { JUDGEMENT } from '../payout/judgement.ts'
import { paise } from '../payout/money.ts'
import type { Decision, Payout } from '../payout/payout.ts'
import { type Resolution, resolve } from '../payout/resolve.ts'
import { become, change, type Timetable } from '../payout/transition.ts'
import { systemClock } from '../platform/clock.ts'
import type { IncomingRecord } from '../platform/kafka/records.ts'
import { sql } from '../platform/postgres.ts'
import { recallPublished } from './lost.ts'
import { askAboutOpen, fence, listOpen, takeDown } from './recovery.ts'

const TABLE: Timetable = { queryAfterMs: [1], graceMs: 0, confirmations: 2, resendWhenAbsent: true }
const WHO = { by: 'asha', reason: 'disk lost' }
const ORDER = { amount: paise(AMOUNT) }

type Message = { topic: string; key: string; eventId: string; value: Buffer }
const outbox = sql<object, Message>`select topic, key, event_id, value from outbox order by position`
const forgetMessages = sql<object>`delete from outbox`
const current = sql<object, Pick<Payout, 'state' | 'version' | 'attempt' | 'utr'>>`
  select state, version, attempt, utr from payouts where payout_id = 'p'`
/** As it was when it had just been taken in. */
const setBack = sql<object>`
  update payouts set state = 'queued', reason = null, version = 1, attempt = 0, account_id = null, doubted = false,
    unknown_since = null, fee = null, utr = null, ready = true, due_at = deadline
  where payout_id = 'p'`
const forgetHistory = sql<object>`delete from history where payout_id = 'p' and version is distinct from 1`
const forgetAttempts = sql<object>`delete from attempts`

/** A payout `p`, whose story was published and then lost; and another order, which the gateway is known to have. */
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
  async function restore(): Promise<Message[]> {
    const published = await db.run(outbox, {})
    for (const statement of [setBack, forgetHistory, forgetAttempts, forgetMessages])
      await db.run(statement, {})
    return published
  }

  async function recover(published: readonly Message[], table = TABLE) {
    const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
    assert.ok(raised)
    await listOpen(db, raised)
    await recallPublished(['acme'], {
      ledger,
      codec,
      async readTopic(topic, onRecord) {
        for (const { key, value } of published.filter((each) => each.topic === topic))
          await onRecord({ key: Buffer.from(key), value } as IncomingRecord)
      },
    })
    const account = {
      ...{ accountId, table, query: (mchOrderNo: string) => client.query({ mchOrderNo }) },
      control: { found: () => undefined, holds: async () => true },
    }
    const signal = new AbortController().signal
    await askAboutOpen(raised, {
      ...{ ledger, judge: JUDGEMENT, accounts: [account], ratePerSecond: 1_000, clock: systemClock, signal },
      onProgress: () => undefined,
    })
    assert.equal((await takeDown(raised, ledger)).kind, 'recovered')
  }

  /** The payouts that dispatch would send now. */
  async function wave(): Promise<string[]> {
    await db.run(openPurse, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
    const [mark] = await db.run(beforeAsking, { merchantId: 'acme' })
    assert.ok(mark)
    await db.run(keepBalance, { merchantId: 'acme', available: 10n ** 12n, ...mark })
    const claimed = await claim(ledger, {
      ...{
        merchantId: 'acme',
        atMost: 9,
        owner: 'me',
        leaseMs: 60_000,
        account: { accountId, settingsHash: 'h' },
      },
      ...{ sealing: config.sealing, fingerprintKey: config.fingerprintKey },
      limits: { maxInFlight: 64, ratePerSecond: null },
    })
    return claimed.wave.map(({ payout }) => payout.payoutId)
  }

  async function told(messages: readonly Message[]): Promise<string[]> {
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

const REFUSED = { kind: 'refused', code: 'LIMIT', message: 'day limit', vouched: true, exchange: {} } as const

const ENDS: [name: string, end: (world: World) => Promise<void>, state: object][] = [
  [
    'a person cancelled it',
    async ({ ledger }) => {
      await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger)
    },
    { state: 'cancelled', version: 2, attempt: 0, utr: null },
  ],
  [
    'its time was over',
    ({ step }) => step((p) => JUDGEMENT.whenDue(p, TABLE, p.deadline) as Decision),
    { state: 'cancelled', version: 2, attempt: 0, utr: null },
  ],
  [
    'the gateway refused it',
    async ({ step }) => {
      await step(submit)
      await step((p, now) => JUDGEMENT.recordApply(p, 1, REFUSED, TABLE, now))
    },
    { state: 'failed', version: 3, attempt: 1, utr: null },
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

describe('an end that was published and lost is the end, which nobody is told otherwise, and nothing is sent', () => {
  for (const resendWhenAbsent of [true, false]) {
    for (const [name, end, state] of ENDS) {
      test(`${name}${resendWhenAbsent ? '' : ', where duplicates may be paid'}`, async (t) => {
        const lost = await world(t)
        await end(lost)
        await lost.recover(await lost.restore(), { ...TABLE, resendWhenAbsent })
        assert.deepEqual(await lost.now(), state)
        assert.deepEqual(await lost.wave(), [])
        assert.deepEqual(await lost.published(), [])
        assert.deepEqual(await brokenVersions(lost.ledger), [])
        assert.deepEqual(await anomaliesOf(lost.ledger), [])
      })
    }
  }
})

test('what the gateway says against it is an anomaly, and changes nothing', async (t) => {
  const lost = await world(t)
  await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
  const published = await lost.restore()
  await lost.pay()
  await lost.recover(published)
  assert.deepEqual(await lost.now(), { state: 'cancelled', version: 2, attempt: 1, utr: null })
  assert.deepEqual(await anomaliesOf(lost.ledger), ['contradiction'])
  assert.deepEqual(await lost.published(), [])
})

test('an end whose result was not published before the loss is told with what the gateway says of it', async (t) => {
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

test('where the ledger has gone on under the version of the published end, a person decides', async (t) => {
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

test('where part of its story is no more in Kafka, versions go on above the highest that was published', async (t) => {
  const lost = await world(t)
  await lost.step(submit)
  await lost.step((p) => change(p, become(p, 'unknown', { reason: 'timeout', unknownSince: 1 }), 'APPLY', {}))
  const published = await lost.restore()
  await lost.recover(
    [...published.filter(({ key }) => key !== 'acme:p'), published.at(-1) ?? assert.fail()],
    { ...TABLE, resendWhenAbsent: false },
  )
  assert.deepEqual(await lost.now(), { state: 'review', version: 4, attempt: 1, utr: null })
})

describe('what was cancelled while fenced, and was sent by what was published, is a case for a person', () => {
  for (const resendWhenAbsent of [true, false]) {
    test(`and the recovery ends${resendWhenAbsent ? '' : ', where duplicates may be paid'}`, async (t) => {
      const lost = await world(t)
      const later = { kind: 'retry-later', code: 'TOO_FAST', message: '', balanceShort: false } as const
      for (const attempt of [1, 2]) {
        await lost.step(submit)
        await lost.step((p, now) =>
          JUDGEMENT.recordApply(p, attempt, { ...later, vouched: true, exchange: {} }, TABLE, now),
        )
      }
      const published = await lost.restore()
      await fence(lost.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
      await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, lost.ledger)
      await lost.recover(published, { ...TABLE, resendWhenAbsent })
      const { state, attempt } = (await lost.now()) ?? {}
      assert.deepEqual([state, attempt], ['review', 2])
      assert.deepEqual(await lost.wave(), [])
    })
  }
})
