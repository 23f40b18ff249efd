import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { command } from '../../domain/commands/command.fixture.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { applyEvidence } from '../../domain/payout/apply-evidence.ts'
import type { Payout } from '../../domain/payout/payout.ts'
import { recordApply } from '../../domain/payout/record-apply-answer.ts'
import { become } from '../../domain/payout/transition.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { holding } from './holds.fixture.ts'

const DAY = 86_400_000
const POLICY = { queryAfterMs: [1_000], graceMs: 1_000, confirmations: 1, resendWhenAbsent: false }

/** As if all that is known of payments had come a day before. */
const aDayEarlier = sql<object>`
  with payments as (update payments set pays_at = pays_at - interval '1 day', open_from = open_from - interval '1 day')
  update attempts set claimed_at = claimed_at - interval '1 day'`
const acknowledgeAll = sql<object>`
  update anomalies set acknowledged_by = 'asha', acknowledged_reason = 'told them', acknowledged_at = now()`

/** A merchant who pays once a day. */
async function daily(t: TestContext) {
  const opened = await holding(t, { payPeriod: 'day' })
  return {
    ...opened,
    /** The same payment in a batch of its own. */
    pay: (payoutId: string, notBefore: number | null = null) =>
      opened.take(command(payoutId, { batchId: payoutId, notBefore })),
    nextDay: () => opened.ledger.db.run(aDayEarlier, {}),
    acknowledge: () => opened.ledger.db.run(acknowledgeAll, {}),
    /** The gateway refuses what it was sent. */
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

const sent = (payout: Payout) => ({
  change: {
    ...{ before: payout, source: 'COMMAND' as const, exchange: null },
    after: become(payout, 'submitting', { attempt: 1, agentpayOrderId: 'AP1' }),
  },
})
const failed = (payout: Payout) => become(payout, 'failed', { reason: 'NO', unreported: true })

describe('the same payment in a later pay period', () => {
  test('is held while the earlier one still waits, or is under way, or is with a person', async (t) => {
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

  test('is paid once the earlier one has ended, whenever it was known to be paid', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    await pay('first')
    await move('first', 'submitting')
    await nextDay()
    await move('first', 'paid')
    await pay('next')
    assert.equal((await reasons()).next, 'queued')
  })

  test('is held in the period in which the earlier one was sent, too', async (t) => {
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

  test('is held behind any number that were cancelled meanwhile', async (t) => {
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

  test('is paid however many came and ended before', async (t) => {
    const { pay, move, nextDay, reasons } = await daily(t)
    for (let i = 0; i <= 101; i++) {
      await pay(`day-${i}`)
      await move(`day-${i}`, 'submitting', 'paid')
      await nextDay()
    }
    const held = Object.values(await reasons()).filter((reason) => reason !== 'paid')
    assert.deepEqual(held, [])
  })

  test('waits for its time, as asked for, while the earlier one waits', async (t) => {
    const { pay, nextDay, reasons } = await daily(t)
    await pay('first')
    await nextDay()
    await pay('tomorrow', Date.now() + DAY)
    await pay('today')
    assert.deepEqual(await reasons(), { first: 'queued', today: 'duplicate', tomorrow: 'schedule' })
  })
})

describe('a payment that comes after the period of its notBefore', () => {
  test('is compared with what was paid in that period, and with what is paid in that of now', async (t) => {
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

describe('the same payment after one that ended unpaid', () => {
  test('is held once the gateway has said anything but that it failed, acknowledged or not', async (t) => {
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

  test('is held once the gateway took it after all, or has a payment that was cancelled', async (t) => {
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

  test('is paid if the gateway says that it failed', async (t) => {
    const { pay, refused, says, reasons } = await daily(t)
    await pay('first')
    await refused('first')
    await says('first', 'failed')
    await says('first', 'failed', { amount: null })
    await pay('again')
    assert.equal((await reasons()).again, 'queued')
  })

  test('is held in later pay periods, too, until a person acknowledges what the gateway said', async (t) => {
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
})
