import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { command } from '../../domain/commands/command.fixture.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { holding } from './holds.fixture.ts'

const DAY = 86_400_000

/** As if all that is known of payments had come a day before. */
const aDayEarlier = sql<object>`
  with payments as (update payments set pays_at = pays_at - interval '1 day', open_from = open_from - interval '1 day')
  update attempts set claimed_at = claimed_at - interval '1 day'`
/** A merchant who pays once a day. */
async function daily(t: TestContext) {
  const opened = await holding(t, { payPeriod: 'day' })
  return {
    ...opened,
    /** The same payment in a batch of its own. */
    pay: (payoutId: string, notBefore: number | null = null) =>
      opened.take(command(payoutId, { batchId: payoutId, notBefore })),
    nextDay: () => opened.ledger.db.run(aDayEarlier, {}),
  }
}

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
