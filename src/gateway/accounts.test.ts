import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../platform/running/clock.ts'
import { eventually } from '../platform/running/eventually.fixture.ts'
import { connectAccounts } from './accounts.ts'
import { DIALECT, KEY, ORDER, PAYIN, signedJson, startServer } from './testing.ts'

const SETTINGS = { key: KEY, formerKeys: [], dialectName: 'refused', tls: {}, dialect: DIALECT }

test('hanging queries and payins keep no apply from its connection', { timeout: 10_000 }, async (t) => {
  const { url, seen } = await startServer(t, ({ path }, response) => {
    if (path === DIALECT.paths.apply)
      response.end(signedJson({ retCode: 'SUCCESS', agentpayOrderId: 'AP1', fee: 300, status: 1 }))
  })
  const [{ client }] = connectAccounts(
    { ...SETTINGS, baseUrl: url, mchId: 'current', formerAccounts: [] },
    { applies: 1, clock: systemClock, mixedUp: async () => undefined },
  )
  t.after(() => client.close())
  const mayStillSend = () => true
  for (let i = 0; i < 100; i++) {
    void client.query({ mchOrderNo: `Q${i}` })
    void client.payinCreate({ ...PAYIN, mchOrderNo: `C${i}` }, { mayStillSend })
  }
  await eventually('the others to hang', async () => seen.length > 0)
  assert.equal((await client.apply(ORDER, { mayStillSend })).kind, 'accepted')
})

test('the promises of a former account do not count, because no operator adopts them', async (t) => {
  const settings = {
    ...{ ...SETTINGS, baseUrl: 'http://127.0.0.1:9' },
    dialect: { ...DIALECT, duplicateApply: 'refused' as const },
  }
  const formerAccounts = [{ ...settings, mchId: 'former' }]
  const accounts = connectAccounts(
    { ...settings, mchId: 'current', formerAccounts },
    { applies: 1, clock: systemClock, mixedUp: async () => undefined },
  )
  t.after(() => Promise.all(accounts.map(({ client }) => client.close())))
  assert.deepEqual(
    accounts.map(({ mchId, queryPolicy }) => [mchId, queryPolicy.duplicatesRefused]),
    [
      ['current', true],
      ['former', false],
    ],
  )
})
