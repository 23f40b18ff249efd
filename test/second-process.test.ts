import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startPayoutd } from '../src/app/start.ts'
import type { Config } from '../src/config/config.ts'
import type { Merchant } from '../src/config/merchants.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { fencedMerchants } from '../src/ledger/ledger.ts'
import { lowerFence } from '../src/operators/recovery/nothing-lost.ts'
import { fence, lowerAfterRecovery } from '../src/operators/recovery/recovery.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { accepted, testLedger } from './ledger.ts'

const WHO = { by: 'asha', reason: 'a standby took over' }
const anotherServer = sql<object>`update ledger_server set timeline = timeline - 1`

/** A process for acme has met another server, and has fenced acme there. */
async function failover(t: TestContext) {
  const { ledger, config } = await testLedger(t)
  const acme = config.merchants.get('acme') as Merchant
  const newcomer = { ...acme, merchantId: 'newcomer', mchId: '1000200' }
  const both: Config = {
    ...config,
    merchants: new Map([acme, newcomer].map((each) => [each.merchantId, each])),
  }
  await accepted(ledger, config, [command('p')])
  await start(config)
  await ledger.db.run(anotherServer, {})
  await start(config)
  const fenced = async () => [...(await fencedMerchants(ledger.db))]
  assert.deepEqual(await fenced(), ['acme'])
  return { ledger, both, fenced }
}

async function start(config: Config): Promise<void> {
  const payoutd = await startPayoutd(config, new Set(['dispatch']), silentLogger)
  await payoutd.stop()
}

test('a process that starts after a recovery finds its merchant fenced if the standby lacks it', async (t) => {
  const { ledger, both, fenced } = await failover(t)
  const [raised] = await fence(ledger.db, [{ merchantId: 'acme', feeEstimate: 0n }], WHO)
  assert.ok(raised)
  assert.equal((await lowerAfterRecovery(raised, WHO, ledger)).kind, 'recovered')
  assert.deepEqual(await fenced(), [])
  await start(both)
  assert.deepEqual(await fenced(), ['newcomer'])
})

test('no further merchant is fenced once a person has confirmed that the standby lacks nothing', async (t) => {
  const { ledger, both, fenced } = await failover(t)
  assert.deepEqual(await lowerFence('acme', WHO, ledger), { merchantId: 'acme', kept: null })
  await start(both)
  assert.deepEqual(await fenced(), [])
})
