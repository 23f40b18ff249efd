import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACCOUNT, accepted, setBalance, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { SAFEGUARDS } from '../../app/safeguards.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { DECISIONS } from '../../domain/decisions.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { Dispatch } from './dispatch.ts'

const LEASE_MS = 60_000
const SEND_TIMEOUT_MS = 10_000
const LEFT_MS = LEASE_MS - SEND_TIMEOUT_MS

/** Whether a payout may still be sent after a delay between claim and send, in which the two clocks move on by so much. */
async function mayBeSent(t: TestContext, wallMs: number, monotonicMs: number): Promise<boolean> {
  const { ledger, config } = await testLedger(t)
  const { db } = ledger
  await db.run(upsertMerchant, { merchantId: 'acme', settingsHash: ACCOUNT.settingsHash, feeEstimate: 0n })
  await accepted(ledger, config, [command('p')])
  await setBalance(db, 'acme', 10n ** 12n)
  let [wall, monotonic] = [1_000_000, 5_000]
  const asked = Promise.withResolvers<boolean>()
  const metrics = new Metrics()
  const dispatch = new Dispatch({
    ...{
      claim: SAFEGUARDS.claim,
      maySend: SAFEGUARDS.maySend,
      decisions: DECISIONS,
      ledger,
      queryPolicies: new Map(),
    },
    ...{ sealing: config.sealing, fingerprintKey: config.fingerprintKey, owner: 'me', inFlight: 8 },
    senders: new Map([
      [
        'acme',
        {
          ...{ account: ACCOUNT, limits: { maxInFlight: 8, ratePerSecond: null } },
          ...{ leaseMs: LEASE_MS, sendTimeoutMs: SEND_TIMEOUT_MS },
          async apply(_payout, _details, mayStillSend) {
            wall += wallMs
            monotonic += monotonicMs
            asked.resolve(mayStillSend())
            return { kind: 'not-sent', reason: 'ECONNREFUSED', exchange: {} }
          },
          balance: async () => ({ kind: 'unknown', reason: 'not-sent', exchange: {} }),
        },
      ],
    ]),
    clock: { now: () => wall, monotonic: () => monotonic },
    log: silentLogger,
    answered: metrics.counter('answers_total', 'test', ['merchant', 'answer']),
    took: metrics.seconds('took_seconds', 'test', []),
  })
  await dispatch.turn()
  const may = await asked.promise
  await dispatch.drain(new AbortController().signal)
  return may
}

test('payoutd sends a payout within its lease', async (t) => {
  assert.equal(await mayBeSent(t, LEFT_MS - 1, LEFT_MS - 1), true)
})

test('after a suspend, a machine sends nothing on a lease that ended meanwhile, although its monotonic clock stood still', async (t) => {
  assert.equal(await mayBeSent(t, LEFT_MS, 0), false)
})

test('a clock that is set back does not make a lease longer', async (t) => {
  assert.equal(await mayBeSent(t, -3_600_000, LEFT_MS), false)
})
