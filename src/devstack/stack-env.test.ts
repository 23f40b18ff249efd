import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { writeStackEnv } from './stack-env.ts'
import { freshDir } from './testing.ts'

test('the addresses can be read as an environment file, and by their owner only', (t) => {
  const file = path.join(freshDir(t).path, 'stack.env')
  writeFileSync(file, 'DATABASE_URL=old\n', { mode: 0o644 })
  writeStackEnv(file, {
    databaseUrl: 'postgres://postgres:secret@127.0.0.1:5432/payoutd',
    kafkaBrokers: ['127.0.0.1:9092', '127.0.0.1:9094'],
    schemaRegistryUrl: 'http://127.0.0.1:8081/apis/ccompat/v7',
    gatewayBaseUrl: undefined,
    gatewayMchId: undefined,
    gatewayKey: undefined,
  })
  assert.deepEqual(
    { ...parseEnv(readFileSync(file, 'utf8')) },
    {
      DATABASE_URL: 'postgres://postgres:secret@127.0.0.1:5432/payoutd',
      KAFKA_BROKERS: '127.0.0.1:9092,127.0.0.1:9094',
      SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081/apis/ccompat/v7',
    },
  )
  assert.equal(statSync(file).mode & 0o777, 0o600)
})
