import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNT, accepted, payoutsOf, testLedger } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { askingAbout } from './known-orders.ts'

const confirm = sql<{ accountId: string }>`
  update payouts set attempt = 1, ready = false, account_id = ${'accountId'}, state = 'paid', agentpay_order_id = payout_id
  where payout_id <> 'unsent'`

test('the presence check asks about the newest orders, and the oldest, that the account confirmed', async (t) => {
  const { ledger, config } = await testLedger(t)
  for (const payoutId of ['c', 'a', 'd', 'b', 'unsent']) await accepted(ledger, config, [command(payoutId)])
  const { accountId } = ACCOUNT
  await ledger.db.run(confirm, { accountId })
  const orderNo = new Map((await payoutsOf(ledger)).map((payout) => [payout.payoutId, payout.orderNo]))
  const known = (accountId: string) =>
    askingAbout({ merchantId: 'acme', accountId }, () => assert.fail(), ledger.db).known()
  assert.deepEqual(
    await known(accountId),
    ['b', 'd', 'c'].map((payoutId) => orderNo.get(payoutId)),
  )
  assert.deepEqual(await known('another'), [])
})
