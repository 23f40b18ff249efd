import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, testLedger } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { askingAbout, knownBeside } from './known-orders.ts'
import { newestOrders } from './sql/known-orders.ts'

const send = sql<{ accountId: string; payoutId: string; n: number; attempts: number; isConfirmed: boolean }>`
  with made as (
    insert into attempts (merchant_id, payout_id, attempt, order_no, owner, lease_until, claimed_at)
    select 'acme', ${'payoutId'}, a, 'O', 'me', (${'n'} + 0.5) * interval '1 s' + '2026-11-01'::timestamptz,
      ${'n'} * interval '1 s' + '2026-11-01'::timestamptz
    from generate_series(1, ${'attempts'}::int) a
  )
  update payouts set attempt = ${'attempts'}, ready = false, account_id = ${'accountId'},
    sent_at = ${'n'} * interval '1 s' + '2026-11-01'::timestamptz,
    state = case when ${'isConfirmed'} then 'paid' else 'unknown' end,
    agentpay_order_id = case when ${'isConfirmed'} then payout_id end
  where payout_id = ${'payoutId'}`
const sentTogether = sql<object>`
  update payouts p set sent_at = lost.sent_at from payouts lost where p.payout_id = 'a' and lost.payout_id = 'lost'`
const allInReview = sql<object>`update payouts set state = 'review' where agentpay_order_id is not null`

test('a presence check asks about orders of the account from before and after the payout, by when they were sent', async (t) => {
  const { ledger, config } = await testLedger(t)
  const { accountId } = ACCOUNT
  const sent = ['lost-first', 'a', 'b', 'sent-twice', 'lost', 'c', 'd', 'lost-last']
  for (const payoutId of [...sent, 'unsent'].toReversed()) await accepted(ledger, config, [command(payoutId)])
  for (const [n, payoutId] of sent.entries())
    await ledger.db.run(send, {
      ...{ accountId, payoutId, n, isConfirmed: !payoutId.startsWith('lost') },
      attempts: payoutId === 'sent-twice' ? 2 : 1,
    })
  const payouts = await payoutsOf(ledger)
  const named = (orders: readonly string[] | null) =>
    orders?.map((orderNo) => payouts.find((payout) => payout.orderNo === orderNo)?.payoutId)
  const beside = async (payoutId: string, account = accountId) =>
    named(await knownBeside(ledger.db, { merchantId: 'acme', payoutId, accountId: account }))
  assert.deepEqual(await beside('lost'), ['b', 'c'])
  assert.deepEqual(await beside('lost-first'), ['a'])
  assert.deepEqual(await beside('lost-last'), ['d'])
  assert.equal(await beside('lost', 'another'), undefined, 'it never reported an order')
  const { known } = askingAbout(
    { merchantId: 'acme', payoutId: 'lost', accountId },
    () => assert.fail(),
    ledger.db,
  )
  assert.deepEqual(named(await known()), ['b', 'd'])
  await ledger.db.run(sentTogether, {})
  assert.deepEqual(
    await beside('lost'),
    ['a', 'c'],
    'one of the same wave shows what the gateway knows of that time',
  )
  const newest = await ledger.db.run(newestOrders, { merchantId: 'acme', accountId })
  assert.deepEqual(named(newest.map(({ orderNo }) => orderNo)), ['d', 'c'])
  await ledger.db.run(allInReview, {})
  assert.deepEqual(await beside('lost'), [], 'it reported orders, but need not find these')
})
