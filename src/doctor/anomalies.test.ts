import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../test/ledger.ts'
import { storeDecisions } from '../ledger/ledger.ts'
import { acknowledgeAnomalies } from '../operators/acknowledge.ts'
import { openAnomalies } from '../queries/sql/anomalies.ts'
import { checkAnomalies } from './anomalies.ts'

test('unacknowledged anomalies cause a warning, which names the oldest', async (t) => {
  const { ledger } = await testLedger(t)
  const checked = async () => checkAnomalies(await ledger.db.run(openAnomalies, {}))
  assert.deepEqual(await checked(), { state: 'good', what: 'every anomaly is acknowledged' })
  const about = { payoutId: null, orderNo: 'P1', detail: '', source: 'CALLBACK', exchange: null } as const
  for (const [merchantId, kind] of [
    ['acme', 'unknown-order'],
    ['acme', 'contradiction'],
    ['bolt', 'amount-mismatch'],
  ] as const) {
    await ledger.db.transaction('test', (tx) =>
      storeDecisions(tx, ledger, [{ anomaly: { ...about, merchantId, kind } }]),
    )
  }
  const changed = { ...about, merchantId: 'acme', kind: 'same-id-other-content', payoutId: 'p-1' } as const
  for (const detail of ['another amount', 'another beneficiary'])
    await ledger.db.transaction('test', (tx) =>
      storeDecisions(tx, ledger, [{ anomaly: { ...changed, detail } }]),
    )
  const { state, what } = await checked()
  assert.equal(state, 'warning')
  assert.match(
    what,
    /^nobody has acknowledged 4 of merchant acme, the oldest unknown-order from \S+ \S+Z \(\S{36}\), and 1 payout among them came again with other content, which payoutd does not pay; 1 of merchant bolt, the oldest amount-mismatch from /,
  )
  const [acme] = await ledger.db.run(openAnomalies, {})
  const decision = { merchantId: 'acme', by: 'asha', reason: 'theirs', anomalyIds: [acme?.oldestId ?? ''] }
  await acknowledgeAnomalies(decision, ledger.db)
  assert.match((await checked()).what, /3 of merchant acme, the oldest contradiction from /)
})
