import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ACCOUNT, anomaliesOf } from '../../../test/ledger.ts'
import { ABSENT } from '../../../test/lost-ledger.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import type { Instant } from '../../domain/instant.ts'
import { type Paise, paise } from '../../domain/money.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { applyEvidenceBatch, type PayoutEvidence } from '../../stages/outcomes/outcomes.ts'
import { acceptedAs, reported, setBackLedger, TIMEOUT } from './set-back.fixture.ts'

const lockOther = sql<object>`select from payouts where payout_id = 'other' for update`
const times = sql<object, { publishedAt: Instant; paidAt: Instant | null }>`
  select h.published_at, p.paid_at from history h join payouts p using (merchant_id, payout_id)
  where payout_id = 'p' order by h.version`

const AMOUNT = paise(50_000_00n)
const OTHER_AMOUNT = paise(40_000_00n)
const OTHER_SAID = { status: 'failed', agentpayOrderId: 'AP-other', utr: null } as const

const callback = (
  payoutId: string,
  amount: Paise,
  said: Pick<OrderReport, 'status' | 'agentpayOrderId' | 'utr'>,
): PayoutEvidence => {
  const mchOrderNo = orderNumber('acme', payoutId, 1)
  const report = { ...said, mchOrderNo, amount, fee: null, errorMessage: null, exchange: {} }
  return { merchantId: 'acme', mchOrderNo, source: 'CALLBACK', report, accountIds: [ACCOUNT.accountId] }
}

for (const status of ['success', 'failed'] as const)
  test(`a callback (${status}) whose transaction began before that of the answer counts as after it, and a recovery takes its end over`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.read()
    await lost.read('other', { amount: OTHER_AMOUNT })
    await lost.backUp()
    await lost.wave()
    const said = { status, agentpayOrderId: 'AP1', utr: status === 'success' ? '632611200001' : null }
    let called: Promise<unknown> = Promise.resolve()
    await lost.db.transaction('test', async (tx) => {
      await tx.run(lockOther, {})
      called = applyEvidenceBatch(
        [callback('other', OTHER_AMOUNT, OTHER_SAID), callback('p', AMOUNT, said)],
        lost.deps,
      )
      await delay(50)
      await lost.say(acceptedAs('AP1'))
    })
    await called
    const stored = await lost.db.run(times, {})
    const published = stored.map(({ publishedAt }) => publishedAt)
    assert.deepEqual(
      published,
      published.toSorted((a, b) => a - b),
    )
    if (status === 'success') assert.equal(stored.at(-1)?.paidAt, published.at(-1))
    await lost.lose()
    await lost.restoreBackUp()
    const before = await lost.publishedLines()
    await lost.recover(reported(said))
    const again = (await lost.publishedLines()).slice(before.length)
    assert.deepEqual(again, [])
    assert.equal((await anomaliesOf(lost.ledger)).includes('end-published'), false)
  })

/** As a server left it whose clock was ahead. */
const wasAhead = sql<{ seconds: number }>`
  update payouts set updated_at = now() + ${'seconds'}::int * interval '1 second'`

for (const seconds of [5, 3_600])
  test(`a payout that changed while the clock was ${seconds} s ahead changes at the right time again, so that a lost attempt is told from the next`, async (t) => {
    const lost = await setBackLedger(t)
    await lost.read()
    await lost.db.run(wasAhead, { seconds })
    await lost.backUp()
    await lost.wave()
    await lost.say(TIMEOUT)
    await lost.lose()
    await lost.restoreBackUp()
    const before = systemClock.now()
    await lost.wave()
    await lost.refuse()
    assert.ok((await lost.db.run(times, {})).every(({ publishedAt }) => publishedAt <= systemClock.now()))
    assert.ok(((await lost.sentAt()) ?? 0) >= before)
    await lost.recover(ABSENT)
    assert.deepEqual(await anomaliesOf(lost.ledger), ['end-published'])
  })

for (const status of ['success', 'failed'] as const)
  test(`an end (${status}) that was published as a result while its events waited is taken over, and published once`, async (t) => {
    const lost = await setBackLedger(t)
    const { topics } = lost.ledger
    await lost.read()
    await lost.backUp()
    await lost.wave()
    await lost.say(acceptedAs('AP1'))
    const said = { status, agentpayOrderId: 'AP1', utr: status === 'success' ? '632611200001' : null }
    await lost.callBack(said)
    await lost.lose(({ topic }, at, all) => {
      const events = all.slice(0, at).filter((each) => each.topic === topics.events)
      return topic !== topics.events || events.length < 2
    })
    await lost.restoreBackUp()
    const before = await lost.publishedLines()
    await lost.recover(reported(said))
    const again = (await lost.publishedLines()).slice(before.length)
    assert.equal(again.length, 1)
    assert.match(again[0] ?? '', / v4$/)
    assert.deepEqual(await anomaliesOf(lost.ledger), [])
  })

test('a callback after the clock has stepped back a little counts as after the answer', async (t) => {
  const lost = await setBackLedger(t)
  await lost.sendAs2()
  await lost.say(acceptedAs('AP1'))
  await lost.db.run(wasAhead, { seconds: 5 })
  await lost.callBack({ status: 'failed', agentpayOrderId: 'AP1', utr: null })
  const published = (await lost.db.run(times, {})).map(({ publishedAt }) => publishedAt)
  assert.ok(
    (published.at(-1) ?? 0) > systemClock.now(),
    'not before what was stored while the clock was ahead',
  )
})
