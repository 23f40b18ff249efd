import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { DECISIONS } from '../src/domain/decisions.ts'
import type { OrderReport } from '../src/domain/evidence.ts'
import type { ApplyAnswer } from '../src/domain/gateway-answers.ts'
import { orderNumber } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import type { QueryPolicy } from '../src/domain/payout/next-query.ts'
import { QUERY_POLICY } from '../src/domain/payout/payout.fixture.ts'
import { cancelPayouts } from '../src/operators/cancel-payouts.ts'
import { lowerFence } from '../src/operators/recovery/nothing-lost.ts'
import { readBackPublished } from '../src/operators/recovery/read-back-published.ts'
import { fence, listOpen, lowerAfterRecovery, queryOpen } from '../src/operators/recovery/recovery.ts'
import type { TopicRecord } from '../src/platform/kafka/records.ts'
import { silentLogger } from '../src/platform/log.ts'
import { Metrics } from '../src/platform/metrics.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { claim } from '../src/stages/dispatch/claim.ts'
import { WARM } from '../src/stages/dispatch/merchant-gate.ts'
import { recordAnswers } from '../src/stages/dispatch/record-answers.ts'
import { applyEvidenceBatch } from '../src/stages/outcomes/outcomes.ts'
import {
  ACCOUNT,
  accepted,
  anomaliesOf,
  payoutsOf,
  setBalance,
  testLedger,
  upsertMerchant,
} from './ledger.ts'
import { outboxMessages } from './outbox-messages.ts'
import { recoveryDeps } from './recovery-deps.ts'

const { ledger, config, codec } = await testLedger({ after })
const { db } = ledger
/** For a gateway that may pay one number twice. */
const POLICY = { ...QUERY_POLICY, confirmations: 2 }
const REFUSES: QueryPolicy = { ...POLICY, duplicatesRefused: true }
const deps = {
  ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log: silentLogger },
  counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
}
const exchange = { note: 'as heard' }
const amount = paise(10_000n)
const mchOrderNo = orderNumber('acme', 'p', 1)
const WHO = { by: 'asha', reason: 'a standby took over' }

const clear = sql<object>`
  truncate payouts, payout_commands, history, attempts, anomalies, outbox, payments, merchants, recovered_payouts`
const warmedUp = sql<{ warmUp: number }>`update merchants set warm_up = ${'warmUp'}`
const readied = sql<object>`update payouts set ready = true where state = 'queued'`
const published = sql<object, { topic: string; key: string; value: Buffer }>`
  select topic, key, value from ${outboxMessages} order by position, n`
/** What the standby lacks: attempt 2, and the answer to attempt 1. */
const backTo = {
  queued: sql<object>`
    with a as (delete from attempts where attempt > 1), h as (delete from history where version > 3), o as (delete from outbox)
    update payouts set state = 'queued', attempt = 1, version = 3, account_id = null, agentpay_order_id = null, ready = true,
      due_at = deadline`,
  submitting: sql<object>`
    with a as (delete from attempts where attempt > 1), h as (delete from history where version > 2), o as (delete from outbox)
    update payouts set state = 'submitting', attempt = 1, version = 2, agentpay_order_id = null, turned_away = false,
      ready = false, due_at = now() + interval '1 minute'`,
  unsent: sql<object>`
    with a as (delete from attempts), h as (delete from history where version > 1), o as (delete from outbox)
    update payouts set state = 'queued', attempt = 0, version = 1, account_id = null, agentpay_order_id = null,
      turned_away = false, ready = true, due_at = deadline`,
}

const report = (agentpayOrderId: string, status: OrderReport['status']): OrderReport => ({
  ...{ mchOrderNo, agentpayOrderId, status, amount, fee: null, utr: null, errorMessage: null, exchange },
})
const callback = (agentpayOrderId: string, status: OrderReport['status']) =>
  applyEvidenceBatch(
    [
      {
        ...{ merchantId: 'acme', mchOrderNo, source: 'CALLBACK' },
        ...{ report: report(agentpayOrderId, status), accountIds: [ACCOUNT.accountId] },
      },
    ],
    deps,
  )

const LATER: ApplyAnswer = {
  ...{ kind: 'retry-later', code: 'LATER', message: 'later', balanceShort: false, exchange },
}
const ACCEPTED: ApplyAnswer = {
  ...{ kind: 'accepted', agentpayOrderId: 'AP2', fee: null, status: 'processing', exchange },
}
const REFUSED: ApplyAnswer = { kind: 'refused', code: 'NO', message: 'no', exchange }
const NOT_SENT: ApplyAnswer = { kind: 'not-sent', reason: 'ECONNREFUSED', exchange }

/** Sends `p`; the answer arrives when the test calls the returned function. */
async function send(): Promise<(answer: ApplyAnswer) => Promise<unknown>> {
  await db.run(readied, {})
  await setBalance(db, 'acme', 10n ** 12n)
  await db.run(warmedUp, { warmUp: WARM })
  const { wave } = await claim(ledger, {
    ...{ merchantId: 'acme', atMost: 1, owner: 'me', leaseMs: 60_000, sealing: config.sealing },
    limits: { maxInFlight: 64, ratePerSecond: null },
    ...{ fingerprintKey: config.fingerprintKey, account: ACCOUNT },
  })
  const [sent] = wave
  assert.ok(sent)
  const { attempt, dueAt } = sent.payout
  const outcome = { merchantId: 'acme', payoutId: 'p', attempt, owner: 'me', leaseUntil: dueAt as number }
  return (answer) =>
    recordAnswers([{ ...outcome, amount: paise(10_000n), keptFee: paise(0), answer, tell: false }], deps)
}

async function begin(): Promise<void> {
  await db.run(clear, {})
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: 'h', feeEstimate: 0n })
  await accepted(ledger, config, [command('p', { amount })])
}

/** By a query. */
const notFound = () =>
  applyEvidenceBatch(
    [
      {
        ...{ merchantId: 'acme', mchOrderNo, source: 'QUERY', ...ACCOUNT, queryPolicy: POLICY },
        answer: { kind: 'not-found', exchange },
        ...{ askedAt: systemClock.now() + 1_000, presence: true },
      },
    ],
    deps,
  )

async function raise() {
  const [raised] = await fence(db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
  return raised ?? assert.fail('there is no fence')
}

/** The gateway turned attempt 1 away, and shows it later as AP1, failed; it accepted attempt 2 as AP2, and the ledger lost that. */
async function setBack(to: keyof typeof backTo) {
  await begin()
  await (await send())(LATER)
  for (const _ of [1, 2]) await notFound()
  await (await send())(ACCEPTED)
  const told = await db.run(published, {})
  await db.run(backTo[to], {})
  return { told, raised: await raise() }
}

const recall = (told: Awaited<ReturnType<typeof setBack>>['told']) =>
  readBackPublished(['acme'], {
    ...{ ledger, codec },
    async readTopic(topic, onRecord) {
      for (const { key, value } of told.filter((each) => each.topic === topic))
        await onRecord({ key: Buffer.from(key), value } as TopicRecord)
    },
  })

/** The gateway shows only AP1, which failed. */
async function recover({ told, raised }: Awaited<ReturnType<typeof setBack>>, queryPolicy = POLICY) {
  await listOpen(db, raised)
  await recall(told)
  await queryOpen(raised, {
    ...{ ...recoveryDeps(), ledger, who: WHO },
    accounts: [
      {
        ...{ ...ACCOUNT, queryPolicy },
        query: async () => ({ kind: 'found', report: report('AP1', 'failed') }),
        presenceCheck: { found: () => undefined, holds: async () => true },
      },
    ],
  })
  assert.equal((await lowerAfterRecovery(raised, WHO, ledger)).kind, 'recovered')
}

const shown = async () =>
  (await payoutsOf(ledger)).map(({ state, reason, attempt }) => [state, reason, attempt])[0]

/** When AP2 is paid. */
async function endsPaid(): Promise<void> {
  await callback('AP2', 'success')
  assert.equal((await shown())?.[0], 'paid')
  assert.deepEqual(
    (await anomaliesOf(ledger)).filter((kind) => kind !== 'never-sent'),
    [],
  )
}

describe('a ledger that was set back fails no payout because of one of two orders', () => {
  for (const to of ['queued', 'submitting'] as const) {
    test(`by a callback, while it is ${to}`, async () => {
      await setBack(to)
      await callback('AP1', 'failed')
      assert.equal((await shown())?.[0], to)
      await endsPaid()
    })

    test(`by a callback, once its published versions were read back: ${to}`, async () => {
      const { told, raised } = await setBack(to)
      await listOpen(db, raised)
      assert.equal(await recall(told), 1)
      await callback('AP1', 'failed')
      assert.deepEqual((await shown())?.slice(0, 3), [to, (await shown())?.[1], 2])
      await endsPaid()
    })
  }

  for (const to of ['queued', 'submitting', 'unsent'] as const) {
    for (const isPublished of [true, false]) {
      const name = `${to}, ${isPublished ? 'with' : 'without'} what was published`
      test(`by the recovery, nor after it: ${name}`, async () => {
        const world = await setBack(to)
        await recover({ ...world, told: isPublished ? world.told : [] })
        assert.notEqual((await shown())?.[0], 'failed')
        await callback('AP1', 'failed')
        assert.notEqual((await shown())?.[0], 'failed')
        await endsPaid()
      })
    }
  }

  test('and leaves waiting payouts to a person at once, or queries them if the gateway refuses duplicates', async () => {
    await recover(await setBack('queued'))
    assert.deepEqual(await shown(), ['review', 'failed-in-doubt', 2])
    await recover(await setBack('queued'), REFUSES)
    assert.deepEqual(await shown(), ['processing', null, 2])
  })
})

describe('while a merchant is fenced', () => {
  test('a refusal ends the attempt but not the payout, which ends once a person confirms that nothing was lost', async () => {
    await begin()
    const answer = await send()
    await db.run(
      sql<object>`update merchants set recovering_since = now(), recovering_by = 'payoutd',
      recovering_reason = 'a standby took over', recovering_one_step = true`,
      {},
    )
    await answer(REFUSED)
    assert.deepEqual(await shown(), ['unknown', 'refused', 1])
    assert.equal((await lowerFence('acme', WHO, ledger)).kept, null)
    await callback('AP1', 'failed')
    assert.deepEqual(await shown(), ['failed', 'failed', 1])
  })

  test('a payout to be cancelled that was not sent after all is cancelled at the end of the recovery', async () => {
    await begin()
    const answer = await send()
    await cancelPayouts({ merchantId: 'acme', payoutIds: ['p'], ...WHO }, ledger)
    const raised = await raise()
    await answer(NOT_SENT)
    assert.deepEqual(await shown(), ['queued', 'cancel-requested', 1])
    await lowerAfterRecovery(raised, WHO, ledger)
    assert.deepEqual(await shown(), ['cancelled', 'cancelled', 1])
  })
})
