import assert from 'node:assert/strict'
import { test } from 'node:test'
import { payinLedger } from '../../test/payins.ts'
import { PAYIN_STATES, type PayinState } from '../domain/payin/states.ts'
import { sql } from '../platform/postgres/postgres.ts'
import { openByAccount } from './open-by-account.ts'

const put = sql<{ payinId: string; state: PayinState }>`
  update payins set state = ${'state'}, due_at = now() where payin_id = ${'payinId'}`

test('a payin that has ended is not open, though payoutd will look at it again', async (t) => {
  const { ledger, create } = await payinLedger(t)
  for (const state of PAYIN_STATES) {
    const { payinId } = await create(state)
    await ledger.db.run(put, { payinId, state })
  }
  assert.deepEqual(await openByAccount(ledger.db), [{ merchantId: 'acme', accountId: 'here', count: 4 }])
})
