import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, payoutsOf } from '../../../test/ledger.ts'
import { ABSENT, type LostLedger, lostLedger } from '../../../test/lost-ledger.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import type { OrderReport } from '../../domain/evidence.ts'
import { orderNumber } from '../../domain/identifiers.ts'
import { paise } from '../../domain/money.ts'
import { QUERY_POLICY } from '../../domain/payout/payout.fixture.ts'
import { become } from '../../domain/payout/transition.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { applyEvidenceBatch } from '../../stages/outcomes/outcomes.ts'
import { decided } from '../operations.fixture.ts'
import { recallAnomalies } from './anomalies.ts'

/** Duplicates are refused, so that what is not there may be sent again. */
const POLICY = { ...QUERY_POLICY, confirmations: 2, duplicatesRefused: true }
const mchOrderNo = orderNumber('acme', 'p', 1)
const REPORT: OrderReport = {
  ...{ mchOrderNo, agentpayOrderId: 'AP1', status: 'success', amount: paise(50_000_00n), fee: null },
  ...{ utr: null, errorMessage: null, exchange: {} },
}
const orderShown = sql<object, { orderShown: boolean }>`select order_shown from payouts`
const tamper = sql<object>`update payouts set amount = amount + 100 where payout_id = 'p'`

const callBack = ({ ledger }: LostLedger, said: Partial<OrderReport>) =>
  applyEvidenceBatch(
    [
      {
        ...{ merchantId: 'acme', mchOrderNo, source: 'CALLBACK', accountIds: [ACCOUNT.accountId] },
        report: { ...REPORT, ...said },
      },
    ],
    {
      ...{ ledger, decisions: DECISIONS, queryPolicies: new Map([['acme', POLICY]]), log: silentLogger },
      counted: new Metrics().counter('evidence_total', 'test', ['source', 'outcome']),
    },
  )

/** The ledger is lost and goes on by `since`; then it is recovered. The gateway, asked, has nothing. */
async function recovered(lost: LostLedger, since?: () => Promise<unknown>) {
  const one = await lost.lose()
  await lost.read('p')
  await since?.()
  const published = [...one, ...(await lost.published())]
  await lost.recover(published, ABSENT, {
    duplicatesRefused: true,
    listed: async () => void (await recallAnomalies(['acme'], lost.topics(published))),
  })
  const [payout] = await payoutsOf(lost.ledger)
  assert.deepEqual(await lost.wave(), [])
  return { state: payout?.state, reason: payout?.reason }
}

const move = (lost: LostLedger, state: 'unknown' | 'review', reason: string) =>
  decided(lost.ledger, 'p', (before) => ({
    change: { before, after: become(before, state, { reason }), source: 'CLOCK', exchange: null },
  }))

test('a payout that was published as tampered is a person’s again: they may have paid it under another id since', async (t) => {
  const lost = await lostLedger(t)
  await lost.read('p')
  await lost.db.run(tamper, {})
  assert.deepEqual(await lost.wave(), [])
  assert.deepEqual(await recovered(lost), { state: 'review', reason: 'tampered' })
})

test('one that was published in review after an attempt is a person’s again, also where duplicates are refused', async (t) => {
  const lost = await lostLedger(t)
  await lost.read('p')
  await lost.wave()
  await move(lost, 'unknown', 'timeout')
  await move(lost, 'review', 'expired')
  assert.deepEqual(await recovered(lost), { state: 'review', reason: 'expired' })
})

for (const [reason, shown] of [
  ['expired', false],
  ['order-shown', true],
  ['not-found', true],
] as const)
  test(`one that was published in review (${reason}) is a person’s again although it is under way here, and may be paid`, async (t) => {
    const lost = await lostLedger(t)
    const sent = async () => {
      await lost.wave()
      await move(lost, 'unknown', 'timeout')
    }
    await lost.read('p')
    await sent()
    await move(lost, 'review', reason)
    assert.deepEqual(await recovered(lost, sent), { state: 'review', reason })
    assert.deepEqual(await lost.db.run(orderShown, {}), [{ orderShown: shown }])
    await lost.callBack()
    assert.equal((await payoutsOf(lost.ledger))[0]?.state, 'paid')
  })

test('one that was published in review is a person’s again although the set-back ledger used that version otherwise', async (t) => {
  const lost = await lostLedger(t)
  await lost.read('p')
  await lost.db.run(tamper, {})
  assert.deepEqual(await lost.wave(), [])
  assert.deepEqual(await recovered(lost, lost.sendInVain), { state: 'review', reason: 'tampered' })
})

for (const [what, said] of [
  ['of another amount', { amount: paise(49_000_00n) }],
  ['of a status that is not in the contract', { status: 'unlisted', unlisted: '5' }],
] as const)
  test(`one of which the gateway gave a signed report ${what} is not sent again because it is not found later`, async (t) => {
    const lost = await lostLedger(t)
    await lost.read('p')
    await lost.wave()
    await move(lost, 'unknown', 'timeout')
    await callBack(lost, said)
    assert.equal((await recovered(lost)).state, 'review')
  })

test('one that the gateway refused as a duplicate is not sent again because it is not found later', async (t) => {
  const lost = await lostLedger(t)
  await lost.read('p')
  await lost.wave()
  await move(lost, 'unknown', 'duplicate')
  assert.equal((await recovered(lost)).state, 'review')
})
