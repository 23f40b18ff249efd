import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../platform/clock.ts'
import { connectAccounts } from './accounts.ts'
import { DIALECT, KEY } from './testing.ts'

test('what a former account promises does not count, as nobody adopts it', async (t) => {
  const settings = {
    ...{ baseUrl: 'http://127.0.0.1:9', key: KEY, formerKeys: [], dialectName: 'refused', tls: {} },
    dialect: { ...DIALECT, duplicateApply: 'refused' as const },
  }
  const formerAccounts = [{ ...settings, mchId: 'former' }]
  const accounts = connectAccounts(
    { ...settings, mchId: 'current', formerAccounts },
    { applies: 1, clock: systemClock },
  )
  t.after(() => Promise.all(accounts.map(({ client }) => client.close())))
  assert.deepEqual(
    accounts.map(({ mchId, table }) => [mchId, table.resendWhenAbsent]),
    [
      ['current', true],
      ['former', false],
    ],
  )
})
