import assert from 'node:assert/strict'
import { test } from 'node:test'
import { command } from '../src/domain/commands/command.fixture.ts'
import { paise } from '../src/domain/money.ts'
import { askAll, openReconciliation } from '../src/operators/reconcile/reconcile.ts'
import { reportOf } from '../src/operators/reconcile/report.ts'
import { resolvePayout } from '../src/operators/resolve-payout.ts'
import { reversePayout } from '../src/operators/reversal.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { accepted } from './ledger.ts'
import { AMOUNT, besideSandbox } from './reconcile.ts'

const takeDown = sql<object>`
  update merchants set recovering_since = null, recovering_by = null, recovering_reason = null`
const fenced = sql<object, { merchantId: string }>`
  select merchant_id from merchants where recovering_since is not null`

test('a payout that a person marks paid, whose attempt a set-back ledger lacks, is reconciled and blocks nothing', async (t) => {
  const { ledger, config, db, client, accountId, settle, ended, orderNo } = await besideSandbox(t)
  const sent = command('p', { amount: paise(AMOUNT) })
  await accepted(ledger, config, [sent])
  const order = { ...sent, mchOrderNo: orderNo('p'), notifyUrl: 'http://127.0.0.1:9/never' }
  await client.apply(order, { mayStillSend: () => true })
  const paid = await ended(orderNo('p'))
  await settle(orderNo('p'), paid)
  assert.equal((await db.run(fenced, {})).length, 1)

  const who = { merchantId: 'acme', payoutId: 'p', by: 'asha', reason: 'it is in the books of the gateway' }
  const resolution = { kind: 'paid', utr: paid.report.utr ?? '' } as const
  assert.equal((await resolvePayout({ ...who, resolution, shown: null }, ledger)).kind, 'resolved')
  await db.run(takeDown, {})
  await settle(orderNo('p'), paid)
  assert.deepEqual(await db.run(fenced, {}), [])

  const period = { merchantId: 'acme', accountId, from: 0, to: systemClock.now() + 60_000 }
  const { run } = await askAll(await openReconciliation(period, { db, balance: () => client.balance() }), {
    ...{ db, settle: null, ratePerSecond: 1_000, clock: systemClock },
    query: (mchOrderNo) => client.query({ mchOrderNo }),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  })
  const { listed, totals } = await reportOf(run, null, db)
  assert.deepEqual([listed, totals.paidHere, totals.amountHere, totals.paidThere], [1, 1, AMOUNT, 1])

  await settle(orderNo('p'), { ...paid, report: { ...paid.report, status: 'failed', utr: null } })
  assert.deepEqual(await db.run(fenced, {}), [])
  assert.equal((await reversePayout({ ...who, anomalyId: null, shown: null }, ledger)).kind, 'reversed')
})
