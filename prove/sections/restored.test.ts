import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { silentLogger } from '../../src/platform/log.ts'
import type { Bench } from '../matrix.ts'
import { restored } from './restored.ts'

test('after a restore, payoutd recover lets every payout end as at the gateway, and none is paid twice', async (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), 'restored-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const { TEST_DATABASE_URL, TEST_KAFKA_BROKERS, TEST_SCHEMA_REGISTRY_URL } = process.env
  const stack = {
    databaseUrl: TEST_DATABASE_URL,
    kafkaBrokers: TEST_KAFKA_BROKERS?.split(','),
    schemaRegistryUrl: TEST_SCHEMA_REGISTRY_URL,
  } as Bench['stack']
  const bench = { stack, dir, log: silentLogger, quick: true, signal: t.signal, tell: () => undefined }
  for await (const { payouts, discrepancies } of restored(bench)) {
    assert.equal(payouts, 56)
    assert.deepEqual(discrepancies, [])
  }
})
