import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { standAt, testLedger, upsertMerchant } from '../../../test/ledger.ts'
import { command } from '../../domain/commands/command.fixture.ts'
import { fencedMerchants, type Ledger } from '../../ledger/ledger.ts'
import { lowerFence } from '../../operators/recovery/nothing-lost.ts'
import type { Log, Standing } from '../../platform/kafka/offsets.ts'
import { silentLogger } from '../../platform/log.ts'
import { Metrics } from '../../platform/metrics.ts'
import { sql } from '../../platform/postgres/postgres.ts'
import { lockFunds } from '../dispatch/sql/funds.ts'
import { Intake } from './intake.ts'
import { startingOffset } from './starting-offset.ts'

const WHO = { by: 'asha', reason: 'the standby was synchronous' }
const ALL = ['acme', 'away']
const shortWaits = sql<object>`select set_config('lock_timeout', '50ms', true)`
const anomalies = sql<object, { merchantId: string; kind: string; times: number }>`
  select merchant_id, kind, times from anomalies order by merchant_id`

/** A ledger at position `stands`, and the actions of a process that knew it at `known`. */
async function world(t: TestContext, { known, stands }: { known: Standing; stands: Standing }) {
  const { config, ledger, codec } = await testLedger(t)
  await ledger.db.run(upsertMerchant, { merchantId: 'away', settingsHash: 'h', feeEstimate: 0n })
  await standAt(ledger, 0, stands)
  const at = { topic: ledger.topics.commands, partition: 0 }
  const value = codec.encoder(at.topic, 'in.payoutd.PayoutRequested')(command('p') as never)
  const deps = {
    terms: config.merchants,
    keys: { sealing: config.sealing, fingerprint: config.fingerprintKey },
    decode: (bytes: Buffer | null) => codec.decode(bytes),
    log: silentLogger,
    counted: new Metrics().counter('commands_total', 'test', ['outcome']),
  }
  const record = { offset: known.offset, key: null, value, headers: {}, timestamp: 0 }
  const batch = { ...at, stored: known, nextOffset: known.offset + 1n, records: [record] }
  return {
    ledger,
    take: (by = ledger) => new Intake({ ...deps, ledger: by }).process(batch),
    begin: (log: Log) =>
      startingOffset(at, async () => log, { ledger, merchantIds: ['acme'], log: silentLogger }, known),
  }
}

const fenced = async ({ db }: Ledger) => [...(await fencedMerchants(db))].sort()

describe('a ledger that has lost commands that it had stored', () => {
  const stands = { offset: 1n, logId: null }
  const known = { offset: 2n, logId: null }
  const log = { id: null, low: 0n, high: 3n }

  async function mustHaveFenced(ledger: Ledger): Promise<void> {
    assert.deepEqual(await fenced(ledger), ALL)
    const expected = ALL.map((merchantId) => ({ merchantId, kind: 'ledger-set-back', times: 1 }))
    assert.deepEqual(await ledger.db.run(anomalies, {}), expected)
    for (const merchantId of ALL)
      assert.match(
        (await lowerFence(merchantId, WHO, ledger)).kept ?? '',
        /up to offset 1, but it had .* 2: the ledger was set back/,
      )
  }

  test('makes payoutd fence every merchant when the next command arrives', async (t) => {
    const { ledger, take, begin } = await world(t, { known, stands })
    await assert.rejects(take(), /the ledger was set back/)
    assert.deepEqual(await begin(log), stands)
    await mustHaveFenced(ledger)
  })

  test('or, if nothing arrives, when a process asks for the starting offset, and only once', async (t) => {
    const { ledger, begin } = await world(t, { known, stands })
    assert.deepEqual(await begin(log), stands)
    assert.deepEqual(await begin(log), stands)
    await mustHaveFenced(ledger)
  })

  test('or before it is read again, if another transaction had locked a merchant until then', async (t) => {
    const { ledger, take, begin } = await world(t, { known, stands })
    const impatient: Ledger = {
      ...ledger,
      db: {
        ...ledger.db,
        transaction: (name, work) =>
          ledger.db.transaction(name, async (tx) => {
            await tx.run(shortWaits, {})
            return work(tx)
          }),
      },
    }
    await ledger.db.transaction('test', async (tx) => {
      await tx.run(lockFunds, { merchantId: 'away' })
      await assert.rejects(take(impatient), /the ledger was set back/)
    })
    assert.deepEqual(await fenced(ledger), [])
    assert.deepEqual(await begin(log), stands)
    await mustHaveFenced(ledger)
  })

  test('also if its position is now in a former log', async (t) => {
    const behind = { offset: 9n, logId: 'former' }
    const { ledger, take } = await world(t, { known: { offset: 2n, logId: 'new' }, stands: behind })
    await assert.rejects(take(), /the ledger was set back/)
    assert.deepEqual(await fenced(ledger), ALL)
  })
})

test('a ledger that moved past records that Kafka lost has lost nothing, however far a process had read', async (t) => {
  const known = { offset: 5n, logId: 'former' }
  for (const log of [
    { id: 'new', low: 0n, high: 9n },
    { id: 'former', low: 0n, high: 3n },
  ]) {
    const { ledger, take, begin } = await world(t, { known, stands: known })
    const begun = { offset: 0n, logId: log.id }
    assert.deepEqual(await begin(log), begun)
    assert.deepEqual(await begin(log), begun)
    await assert.rejects(take(), /the ledger was set back/)
    assert.deepEqual(await fenced(ledger), [])
  }
})
