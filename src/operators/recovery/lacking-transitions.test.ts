import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT, HAS_IT, lostLedger, WHO } from '../../../test/lost-ledger.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { ApplyAnswer } from '../../domain/gateway-answers.ts'
import { words } from '../../domain/mask.ts'
import { cancel } from '../../domain/payout/cancel.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { recordApply } from '../../domain/payout/record-apply-answer.ts'
import { recordAbsence } from '../../domain/payout/record-query-answer.ts'
import { RESENT } from '../../domain/payout/resolve.ts'
import { become, change } from '../../domain/payout/transition.ts'
import { END_PUBLISHED } from '../../domain/recovery/published-otherwise.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { decided } from '../operations.fixture.ts'
import { resolvePayout } from '../resolve-payout.ts'

const POLICY = { ...QUERY_POLICY, confirmations: 2, duplicatesRefused: true }
const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: '' },
  ...{ balanceShort: false, exchange: {} },
}

const kept = sql<object, { state: string; version: number; accountId: string | null }>`
  select state, version, account_id from payouts`
const setBack = sql<{ state: string; version: number; accountId: string | null }>`
  with a as (delete from attempts where attempt > 1), h as (delete from history where version > ${'version'}),
    o as (delete from outbox)
  update payouts set state = ${'state'}, version = ${'version'}, attempt = 1, account_id = ${'accountId'}, ready = false,
    cancel_request = null, turned_away = false, doubted = false, reason = null, due_at = now() + interval '1 minute'`
const overdue = sql<object>`update payouts set deadline = now() - interval '1 second'`
const anomalies = sql<object, { detail: string }>`select detail from anomalies order by anomaly_id`
const forgetLoss = sql<object>`
  with gone as (delete from ledger_server) insert into ledger_server (system_identifier, timeline, database_oid)
  values ('7', 1, 1)`
const lossFound = sql<object>`select 1 from ledger_server where loss_found is not null`
const requested = sql<object, { cancelRequest: string | null }>`select cancel_request from payouts`

type LackingLedger = Awaited<ReturnType<typeof world>>

/** A payout that was sent once. `lose` publishes more of it than the ledger keeps. */
async function world(t: TestContext) {
  const lost = await lostLedger(t)
  const { ledger, db } = lost
  await lost.read('p')
  assert.equal((await lost.wave()).length, 1)
  const clock = () =>
    decided(ledger, 'p', (payout, now) => {
      const decision = DECISIONS.onTimer(payout, POLICY, now)
      return 'ask' in decision ? assert.fail('not due') : decision
    })
  return {
    ...lost,
    async lose(work: () => Promise<unknown>) {
      const [before] = await db.run(kept, {})
      await work()
      const published = await lost.published()
      await db.run(setBack, before ?? assert.fail())
      return published
    },
    leaseEnds: clock,
    async expires() {
      await db.run(overdue, {})
      await clock()
    },
    callFailed: () =>
      resolvePayout(
        {
          merchantId: 'acme',
          payoutId: 'p',
          ...WHO,
          resolution: { kind: 'failed', attempt: 1 },
          shown: null,
        },
        ledger,
      ),
    /** And the gateway has no order of it. */
    async toldLater() {
      await decided(ledger, 'p', (payout, now) => recordApply(payout, 1, LATER, POLICY, now))
      const presence = true
      for (const _ of [1, 2])
        await decided(ledger, 'p', (payout, now) =>
          recordAbsence(payout, {}, { askedAt: now + 60_000, presence }, POLICY, now),
        )
    },
    sentAgain: () =>
      decided(ledger, 'p', (payout) => {
        const sent = become(payout, 'submitting', { attempt: 2, dueAt: payout.deadline })
        return change(payout, sent, 'COMMAND', null)
      }),
  }
}

test('nobody calls a payout failed before the recovery knows whether it was sent', async (t) => {
  const lost = await world(t)
  await lost.leaseEnds()
  await lost.expires()
  await lost.raise()
  assert.deepEqual(await lost.callFailed(), {
    ...{ kind: 'refused', refusal: { kind: 'fenced' }, contradictedBy: [] },
  })
})

test('a payout that was sent once more before a person called it failed goes to review again, though the ledger is past those versions', async (t) => {
  const lost = await world(t)
  const published = await lost.lose(async () => {
    await lost.toldLater()
    await lost.sentAgain()
  })
  await lost.leaseEnds()
  await lost.expires()
  await lost.callFailed()
  assert.deepEqual(await lost.now(), ['failed 5 1'])
  const all = [...published, ...(await lost.published())]
  await lost.recover(all, ABSENT)
  assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['review 6 2'], ['end-published']])
  await lost.read('q', { batchId: 'anew' })
  assert.deepEqual(await lost.wave(), [])
  assert.equal((await lost.callFailed()).kind, 'refused')
  const again = { merchantId: 'acme', payoutId: 'p', ...WHO, shown: null }
  await resolvePayout({ ...again, resolution: { kind: 'failed', attempt: 2 } }, lost.ledger)
  await lost.recover(all, ABSENT)
  assert.deepEqual(await lost.now(), ['failed 7 2', 'held 1 0'])
})

test('a payout that was queued for a resend before a person called it failed may have been sent, and goes to review again', async (t) => {
  const lost = await world(t)
  await lost.leaseEnds()
  await lost.expires()
  const published = await lost.lose(() =>
    decided(lost.ledger, 'p', (payout) =>
      change(payout, become(payout, 'queued', { reason: RESENT, ready: true }), 'OPERATOR', null),
    ),
  )
  await lost.callFailed()
  await lost.recover([...published, ...(await lost.published())], ABSENT)
  assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['review 6 1'], ['end-published']])
})

for (const aloneIs of ['event', 'result', null] as const)
  test(`a payment that was published (${aloneIs ?? 'both'}) goes to a person, though the payout was called failed above its version`, async (t) => {
    const lost = await world(t)
    const sent = (await lost.published()).length
    const published = await lost.lose(() => lost.callBack())
    await lost.leaseEnds()
    await lost.expires()
    await lost.callFailed()
    const kept = published.filter(
      ({ topic }, at) =>
        at < sent || aloneIs === null || (topic === lost.ledger.topics.results) === (aloneIs === 'result'),
    )
    await lost.recover([...kept, ...(await lost.published())], ABSENT)
    assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['review 6 1'], ['end-published']])
  })

test('a published failure is reported as lost if the ledger reached a payment above its version, and the payment stands', async (t) => {
  const lost = await world(t)
  const published = await lost.lose(async () => {
    await lost.leaseEnds()
    await lost.expires()
    await lost.callFailed()
  })
  await lost.raise()
  await lost.leaseEnds()
  await lost.answer('processing')
  await lost.expires()
  await lost.callBack()
  await lost.recover([...published, ...(await lost.published())], HAS_IT)
  assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['paid 6 1'], ['end-published']])
})

test('a second run of the recovery reports nothing about an end that the ledger itself reached', async (t) => {
  const lost = await world(t)
  const published = await lost.lose(() => lost.callBack())
  await lost.leaseEnds()
  await lost.expires()
  await lost.callFailed()
  const recover = async () => lost.recover([...published, ...(await lost.published())], ABSENT)
  const told = () => lost.db.run(anomalies, {})
  await recover()
  const once = await told()
  await lost.db.run(forgetLoss, {})
  await recover()
  assert.deepEqual([await told(), await lost.db.run(lossFound, {})], [once, []])
})

test('a payout that was published as to be cancelled is not sent once more, though the ledger reached other versions since', async (t) => {
  const lost = await world(t)
  const published = await lost.lose(async () => {
    await decided(lost.ledger, 'p', (payout) => cancel(payout, 'OPERATOR', words(WHO)))
    await lost.toldLater()
  })
  await lost.raise()
  await lost.leaseEnds()
  for (const _ of [1, 2])
    await decided(lost.ledger, 'p', (payout, now) => {
      const asked = { askedAt: now, presence: true }
      return DECISIONS.whileFenced(DECISIONS.recordAbsence(payout, {}, asked, POLICY, now), POLICY, now)
    })
  assert.deepEqual(await lost.now(), ['queued 4 1'])
  await lost.recover([...published, ...(await lost.published())], ABSENT, { duplicatesRefused: true })
  assert.deepEqual(await lost.wave(), [])
  assert.notEqual((await lost.db.run(requested, {}))[0]?.cancelRequest, null)
})

for (const wasTold of ['processing', 'failed'] as const)
  test(`a failure that the gateway reports after the ledger was set back stands, though the payout was published as ${wasTold} before: there is one attempt`, async (t) => {
    const lost = await world(t)
    const published = await lost.lose(async () => {
      await lost.answer('processing')
      if (wasTold === 'failed') await lost.answer('failed')
    })
    await lost.leaseEnds()
    await lost.answer('failed')
    await lost.recover([...published, ...(await lost.published())], HAS_IT)
    assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['failed 4 1'], []])
  })

describe('a ledger that was set back twice before anybody ran the recovery', () => {
  async function setBackTwice(t: TestContext, first: (lost: LackingLedger) => Promise<unknown>) {
    const lost = await world(t)
    const published = await lost.lose(() => first(lost))
    published.push(
      ...(await lost.lose(async () => {
        await lost.leaseEnds()
        await lost.expires()
      })),
    )
    return { lost, recover: async () => lost.recover([...published, ...(await lost.published())], ABSENT) }
  }

  test('a second run of the recovery counts no attempt twice', async (t) => {
    const { lost, recover } = await setBackTwice(t, async (lost) => {
      await lost.toldLater()
      await lost.sentAgain()
    })
    await recover()
    const after = await lost.now()
    assert.deepEqual(after, ['review 6 2'])
    await recover()
    assert.deepEqual(await lost.now(), after)
  })

  test('a request to cancel in the first story holds, whatever the second story published', async (t) => {
    const { lost, recover } = await setBackTwice(t, async (lost) => {
      await decided(lost.ledger, 'p', (payout) => cancel(payout, 'OPERATOR', words(WHO)))
      await lost.toldLater()
    })
    await recover()
    assert.notEqual((await lost.db.run(requested, {}))[0]?.cancelRequest, null)
  })

  test('a payment of the first story goes to a person, though the second story ends otherwise', async (t) => {
    const lost = await world(t)
    const published = await lost.lose(() => lost.callBack())
    published.push(
      ...(await lost.lose(async () => {
        await lost.leaseEnds()
        await lost.expires()
        await lost.callFailed()
      })),
    )
    await lost.recover(published, ABSENT)
    const told = await anomaliesOf(lost.ledger)
    assert.deepEqual([await lost.now(), told], [['review 6 1'], ['end-published', 'end-published']])
  })
})

test('an end is not taken over if the payout was published as in review above it', async (t) => {
  const lost = await world(t)
  const published = await lost.lose(async () => {
    await lost.answer('failed')
    await decided(lost.ledger, 'p', (payout) =>
      change(
        payout,
        { ...payout, state: 'review', reason: END_PUBLISHED, version: payout.version + 1 },
        'OPERATOR',
        null,
      ),
    )
  })
  await lost.recover(published, ABSENT)
  assert.deepEqual([await lost.now(), await anomaliesOf(lost.ledger)], [['review 5 1'], ['end-published']])
})
