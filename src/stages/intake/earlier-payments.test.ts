import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { ACCOUNT, payoutsOf } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { paise } from '../../domain/money.ts'
import { applyEvidence } from '../../domain/payout/apply-evidence.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { recordApply } from '../../domain/payout/record-apply-answer.ts'
import { become } from '../../domain/payout/transition.ts'
import { LostCallbacks } from '../../ledger/callbacks/lost-callbacks.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { acknowledgeAnomalies } from '../../operators/acknowledge.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { SharedSlots } from '../../platform/running/shared-slots.ts'
import { holdsOf } from '../../queries/sql/payouts/holds.ts'
import { applyEvidenceBatch, type PayoutEvidence } from '../outcomes/outcomes.ts'
import { holding } from './holds.fixture.ts'

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

const DAY = 86_400_000
const AMOUNT = paise(5_000_000n)
const POLICY = { ...QUERY_POLICY, graceMs: 1_000 }

/** Moves all known payments back by a day. */
const aDayEarlier = sql<object>`
  with payments as (update payments set pays_at = pays_at - interval '1 day', open_from = open_from - interval '1 day'),
    reopened as (update reopened_payments set pays_at = pays_at - interval '1 day')
  update attempts set claimed_at = claimed_at - interval '1 day'`
const anomalyIds = sql<object, { anomalyId: string }>`select anomaly_id from anomalies`
const forgetOpenFrom = sql<object>`update payments set open_from = null`
const reopen = sql<{
  payoutId: string
}>`update payouts set state = 'submitting' where payout_id = ${'payoutId'}`
const askNow = sql<object>`update lost_callbacks set ask_at = now()`

/** A merchant who pays once a day. */
async function daily(t: TestContext) {
  const opened = await holding(t, { payPeriod: 'day' })
  return {
    ...opened,
    /** The same payment in a batch of its own. */
    pay: (payoutId: string, notBefore: number | null = null) =>
      opened.take(command(payoutId, { batchId: payoutId, notBefore })),
    nextDay: () => opened.ledger.db.run(aDayEarlier, {}),
    acknowledge: async () => {
      const all = await opened.ledger.db.run(anomalyIds, {})
      const which = { merchantId: 'acme', anomalyIds: all.map(({ anomalyId }) => anomalyId) }
      await acknowledgeAnomalies({ ...which, by: 'asha', reason: 'told them' }, opened.ledger.db)
    },
    /** Applies the reports as signed callbacks that come together. */
    callsBack: (payoutId: string, ...reports: Partial<OrderReport>[]) =>
      evidenced(opened.ledger, payoutId, (report) =>
        reports.map((each) => ({ ...CALLBACK, report: { ...report, ...each } })),
      ),
    /** Answers whatever payoutd has still to ask. */
    answers: async (payoutId: string, status: OrderReport['status']) => {
      await opened.ledger.db.run(askNow, {})
      const slots = new SharedSlots(8, ['acme'], silentLogger)
      const ask = async () => {
        await evidenced(opened.ledger, payoutId, (report) => [
          { ...QUERY, answer: { kind: 'found', report: { ...report, status } } },
        ])
        return 'order' as const
      }
      const lost = new LostCallbacks('payout', { slots, ledger: opened.ledger, log: silentLogger })
      await lost.turn(
        () => ({ queryPolicy: POLICY, ask }),
        () => undefined,
      )
      await slots.drain()
    },
    /** The gateway refuses the payout. */
    refused: (payoutId: string) =>
      opened.decided(payoutId, sent, (payout) => ({
        ...{ change: { before: payout, after: failed(payout), source: 'APPLY', exchange: null } },
      })),
    says: (payoutId: string, status: OrderReport['status'], fields: Partial<OrderReport> = {}) =>
      opened.decided(payoutId, (payout, now) => {
        const { orderNo, amount } = payout
        const facts = { mchOrderNo: orderNo ?? '', agentpayOrderId: 'AP1', amount, fee: null, utr: null }
        const report = { ...facts, status, errorMessage: null, exchange: {}, ...fields }
        return applyEvidence(payout, report, 'CALLBACK', POLICY, now)
      }),
  }
}

const CALLBACK = { source: 'CALLBACK', accountIds: ['here'] } as const
const ASKED = { ...ACCOUNT, queryPolicy: POLICY, askedAt: 0, presence: false }
const QUERY = { source: 'QUERY', ...ASKED } as const

async function evidenced(
  ledger: Ledger,
  payoutId: string,
  said: (report: OrderReport) => DistributiveOmit<PayoutEvidence, 'merchantId' | 'mchOrderNo'>[],
): Promise<void> {
  const payout = (await payoutsOf(ledger)).find((each) => each.payoutId === payoutId)
  const mchOrderNo = payout?.orderNo ?? assert.fail(`no order of ${payoutId}`)
  const facts = { mchOrderNo, agentpayOrderId: 'AP1', amount: AMOUNT, fee: null, utr: null }
  const report = { ...facts, status: 'failed', errorMessage: null, exchange: {} } as const
  const all = said(report).map((each) => ({ ...each, merchantId: 'acme', mchOrderNo }))
  await applyEvidenceBatch(all, {
    ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log: silentLogger },
    counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
  })
}

const sent = (payout: Payout) => ({
  change: {
    ...{ before: payout, source: 'COMMAND' as const, exchange: null },
    after: become(payout, 'submitting', { attempt: 1, agentpayOrderId: 'AP1' }),
  },
})
const failed = (payout: Payout) => become(payout, 'failed', { reason: 'NO', unreported: true })

describe('the same payment in a later pay period', () => {
  test('is held while the earlier one waits, is under way or is in review', async (t) => {
    for (const states of [[], ['submitting'], ['submitting', 'review']] as const) {
      const { pay, move, nextDay, reasons, holds } = await daily(t)
      await pay('first')
      await move('first', ...states)
      await nextDay()
      await nextDay()
      await nextDay()
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate')
      assert.deepEqual(
        (await holds()).map(({ earlierPayoutId }) => earlierPayoutId),
        ['first'],
      )
    }
  })

  test('is paid once the earlier one has ended, however late payoutd learned that it was paid', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    await pay('first')
    await move('first', 'submitting')
    await nextDay()
    await move('first', 'paid')
    await pay('next')
    assert.equal((await reasons()).next, 'queued')
  })

  test('is also held in the period in which the earlier one was sent', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    await pay('first')
    for (let days = 0; days < 3; days++) await nextDay()
    await move('first', 'submitting', 'paid')
    for (const again of ['again', 'once-more']) {
      await pay(again)
      assert.equal((await reasons())[again], 'duplicate')
      await move(again, 'cancelled')
    }
    await nextDay()
    await pay('late', Date.now() - DAY)
    assert.equal((await reasons()).late, 'duplicate')
    await move('late', 'cancelled')
    await pay('next')
    assert.equal((await reasons()).next, 'queued')
  })

  test('is held even if any number of the same were cancelled meanwhile', async (t) => {
    const { pay, take, move, nextDay, reasons } = await daily(t)
    await pay('first')
    await nextDay()
    const tries = Array.from({ length: 100 }, (_, i) => `try-${i}`)
    await take(...tries.map((payoutId) => command(payoutId, { batchId: payoutId })))
    for (const payoutId of tries) await move(payoutId, 'cancelled')
    await nextDay()
    await nextDay()
    await pay('again')
    assert.equal((await reasons()).again, 'duplicate')
  })

  test('is paid however many of the same came and ended before', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    for (let i = 0; i <= 101; i++) {
      await pay(`day-${i}`)
      await move(`day-${i}`, 'submitting', 'paid')
      await nextDay()
    }
    const held = Object.values(await reasons()).filter((reason) => reason !== 'paid')
    assert.deepEqual(held, [])
  })

  test('is paid after more old payments without the note than intake looks at, unless one is open', async (t) => {
    for (const open of [null, 'day-120']) {
      const { ledger, take, pay, move, nextDay, reasons, holds } = await daily(t)
      for (let i = 0; i < 150; i++) {
        await pay(`day-${i}`)
        await move(`day-${i}`, 'submitting', 'paid')
        await nextDay()
      }
      await nextDay()
      await ledger.db.run(forgetOpenFrom, {})
      if (open) await ledger.db.run(reopen, { payoutId: open })
      await take(command('next', { batchId: 'next' }))
      assert.equal((await reasons()).next, open === null ? 'queued' : 'duplicate')
      assert.equal((await holds()).at(-1)?.earlierPayoutId ?? null, open)
    }
  })

  test('waits for its own time while the earlier one waits', async (t) => {
    const { pay, nextDay, reasons } = await daily(t)
    await pay('first')
    await nextDay()
    await pay('tomorrow', Date.now() + DAY)
    await pay('today')
    assert.deepEqual(await reasons(), { first: 'queued', today: 'duplicate', tomorrow: 'schedule' })
  })
})

describe('a payment that comes after the period of its notBefore', () => {
  test('is compared with the payments of that period and with those of the present one', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    await pay('first')
    await move('first', 'submitting', 'paid')
    await nextDay()
    await nextDay()
    await pay('again', Date.now() - 2 * DAY)
    assert.equal((await reasons()).again, 'duplicate')
    await move('again', 'cancelled')
    await pay('of-another-day', Date.now() - 3 * DAY)
    assert.equal((await reasons())['of-another-day'], 'queued')
    await pay('now')
    assert.equal((await reasons()).now, 'duplicate')
  })

  test('counts in both periods itself', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    const payday = Date.now() - 5 * DAY
    await pay('late', payday)
    await move('late', 'submitting', 'paid')
    await pay('now')
    assert.equal((await reasons()).now, 'duplicate')
    await move('now', 'cancelled')
    await nextDay()
    await pay('later', payday - DAY)
    assert.equal((await reasons()).later, 'duplicate')
  })

  test('is held beside one that comes with it', async (t) => {
    const { take, reasons } = await daily(t)
    const payday = Date.now() - 5 * DAY
    await take(
      command('late', { batchId: 'a', notBefore: payday }),
      command('again', { batchId: 'b', notBefore: payday }),
      command('now', { batchId: 'c' }),
      command('tomorrow', { batchId: 'd', notBefore: Date.now() + DAY }),
    )
    assert.deepEqual(await reasons(), {
      again: 'duplicate',
      late: 'queued',
      now: 'duplicate',
      tomorrow: 'schedule',
    })
  })
})

describe('the same payment after one that the gateway itself reported as failed', () => {
  const DOUBTFUL: Partial<OrderReport>[] = [
    { status: 'success', doubt: 'unsigned-parameters' },
    { status: 'success', doubt: 'several-readings' },
    { status: 'success', doubt: 'of-a-request' },
  ]

  for (const report of [...DOUBTFUL, { status: 'processing' } as Partial<OrderReport>])
    test(`is held from a callback (${report.doubt ?? report.status}) until the gateway reports again that it failed`, async (t) => {
      const { pay, decided, callsBack, answers, move, reasons } = await daily(t)
      await pay('first')
      await decided('first', sent)
      await callsBack('first', { status: 'failed' })
      await callsBack('first', report)
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate')
      await move('again', 'cancelled')
      await answers('first', 'failed')
      await pay('once-more')
      assert.equal((await reasons())['once-more'], 'queued')
    })

  test('is held while the gateway answers that the order is alive or paid', async (t) => {
    for (const status of ['processing', 'success'] as const) {
      const { pay, decided, callsBack, answers, nextDay, reasons } = await daily(t)
      await pay('first')
      await decided('first', sent)
      await callsBack('first', { status: 'failed' })
      await callsBack('first', { status: 'processing' })
      await answers('first', status)
      await nextDay()
      await nextDay()
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate')
    }
  })

  test('is held if another order was reported as paid, together with the failure or before it', async (t) => {
    const other = { status: 'success', agentpayOrderId: 'AP2' } as const
    for (const reports of [
      [{}, other],
      [other, {}],
    ] as const) {
      const { pay, decided, callsBack, reasons } = await daily(t)
      await pay('first')
      await decided('first', sent)
      await callsBack('first', ...reports)
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate')
    }
  })

  test('is paid, and its hold shows nothing, whatever the gateway reported before that', async (t) => {
    const { ledger, pay, move, decided, callsBack, answers, acknowledge, reasons } = await daily(t)
    await pay('first')
    await decided('first', sent)
    await pay('early')
    await move('early', 'cancelled')
    await callsBack('first', { status: 'success', amount: null })
    await callsBack('first', { status: 'failed' })
    await callsBack('first', { status: 'success', doubt: 'several-readings' })
    await answers('first', 'failed')
    await acknowledge()
    await pay('again')
    assert.equal((await reasons()).again, 'queued')
    const [hold] = await ledger.db.run(holdsOf, { merchantId: 'acme', payoutIds: ['early'] })
    assert.deepEqual([hold?.earlierState, hold?.earlierMayBePaid], ['failed', false])
  })
})

describe('the same payment after one that ended unpaid', () => {
  test('is held once the gateway has reported anything but that it failed, acknowledged or not', async (t) => {
    const words: [OrderReport['status'], Partial<OrderReport>?][] = [
      ['success'],
      ['processing'],
      ['success', { agentpayOrderId: 'AP2' }],
      ['success', { amount: null }],
      ['unlisted', { unlisted: '9' }],
    ]
    for (const [status, fields] of words) {
      const { pay, move, refused, says, acknowledge, reasons } = await daily(t)
      await pay('first')
      await refused('first')
      await says('first', status, fields)
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate', `${status} ${JSON.stringify(fields)}`)
      await move('again', 'cancelled')
      await acknowledge()
      await pay('once-more')
      assert.equal((await reasons())['once-more'], 'duplicate')
    }
  })

  test('to other bank details of one beneficiaryId is held in the same way, and names it', async (t) => {
    const { take, move, refused, says, acknowledge, reasons, holds } = await daily(t)
    const to = (payoutId: string, accountNo: string) =>
      take(command(payoutId, { batchId: payoutId, beneficiaryId: 'E-17', accountNo }))
    await to('first', '50100111111111')
    await refused('first')
    await to('meanwhile', '50100222222222')
    await move('meanwhile', 'cancelled')
    await says('first', 'success')
    await to('again', '50100222222222')
    await move('again', 'cancelled')
    await acknowledge()
    await to('once-more', '50100222222222')
    assert.equal((await reasons())['once-more'], 'beneficiary-changed')
    assert.deepEqual(
      (await holds()).map(({ payoutId, earlierPayoutId }) => [payoutId, earlierPayoutId]),
      [
        ['again', 'first'],
        ['once-more', 'first'],
      ],
    )
  })

  test('is held once the gateway accepted it after all, or has a payment that was cancelled', async (t) => {
    const { take, refused, decided, says, move, reasons } = await daily(t)
    const of = (payoutId: string, rupees: bigint) =>
      command(payoutId, { batchId: payoutId, amount: (rupees * 100n) as Payout['amount'] })
    await take(of('taken', 1n), of('cancelled', 2n))
    await refused('taken')
    const accepted = { kind: 'accepted', agentpayOrderId: 'AP1', status: 'processing', fee: null } as const
    await decided('taken', (payout, now) =>
      recordApply(payout, 1, { ...accepted, exchange: {} }, POLICY, now),
    )
    await move('cancelled', 'cancelled')
    await says('cancelled', 'success')
    await take(of('taken-2', 1n), of('cancelled-2', 2n))
    const { 'cancelled-2': ofCancelled, 'taken-2': ofTaken } = await reasons()
    assert.deepEqual([ofCancelled, ofTaken], ['duplicate', 'duplicate'])
  })

  test('is paid if the gateway reports that it failed', async (t) => {
    const { pay, refused, says, reasons } = await daily(t)
    await pay('first')
    await refused('first')
    await says('first', 'failed')
    await says('first', 'failed', { amount: null })
    await pay('again')
    assert.equal((await reasons()).again, 'queued')
  })

  test('is also held in later pay periods, until a person acknowledges what the gateway reported', async (t) => {
    const { pay, move, refused, says, acknowledge, nextDay, reasons } = await daily(t)
    await pay('first')
    await refused('first')
    await nextDay()
    await pay('again')
    await refused('again')
    await says('first', 'success')
    await pay('once-more')
    assert.equal((await reasons())['once-more'], 'duplicate')
    await move('once-more', 'cancelled')
    await acknowledge()
    await pay('next')
    assert.equal((await reasons()).next, 'queued')
  })

  test('is held by a later contradiction also where the same was paid in between', async (t) => {
    for (const contradict of ['says', 'callsBack', 'reopens'] as const) {
      const { ledger, pay, move, decided, refused, says, callsBack, nextDay, reasons, holds } = await daily(t)
      await pay('first')
      if (contradict === 'callsBack') {
        await decided('first', sent)
        await callsBack('first', { status: 'failed' })
      } else await refused('first')
      for (let i = 0; i < 3; i++) {
        await nextDay()
        await nextDay()
        await pay(`between-${i}`)
        await move(`between-${i}`, 'submitting', 'paid')
      }
      if (contradict === 'says') await says('first', 'success')
      if (contradict === 'callsBack')
        await callsBack('first', { status: 'success', doubt: 'unsigned-parameters' })
      if (contradict === 'reopens') await ledger.db.run(reopen, { payoutId: 'first' })
      await nextDay()
      await nextDay()
      await pay('again')
      assert.equal((await reasons()).again, 'duplicate', contradict)
      assert.equal((await holds()).at(0)?.earlierPayoutId, 'first')
    }
  })
})
