import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createLogger } from '../../src/platform/log.ts'
import { isRight, type Row } from '../matrix.ts'
import { QUICK } from '../sections.ts'

const { TEST_DATABASE_URL = '', TEST_KAFKA_BROKERS = '', TEST_SCHEMA_REGISTRY_URL = '' } = process.env
const mayNot = async () => assert.fail('these servers are shared with other tests')

for (const [name, section] of Object.entries(QUICK)) {
  test(`the matrix in its quick form: ${name}`, async (t) => {
    const dir = await mkdtemp(path.join(tmpdir(), 'prove-'))
    t.after(() => rm(dir, { recursive: true }))
    const rows: Row[] = []
    const bench = {
      stack: {
        databaseUrl: TEST_DATABASE_URL,
        kafkaBrokers: TEST_KAFKA_BROKERS.split(','),
        schemaRegistryUrl: TEST_SCHEMA_REGISTRY_URL,
        kill: mayNot,
        restart: mayNot,
      },
      dir,
      log: createLogger({ name: 'prove', level: 'fatal', destination: 2 }),
      quick: true,
      signal: t.signal,
      tell: () => undefined,
    }
    for await (const row of section(bench)) rows.push(row)
    assert.ok(rows.length > 0)
    for (const row of rows) assert.ok(isRight(row), JSON.stringify(row, null, 2))
  })
}
