import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../../..')

test('npm run ingest finds a file by its path from the folder in which the person is', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'payroll-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(path.join(folder, 'salary.csv'), 'no such column\n1\n')
  const env = {
    ...process.env,
    ...{
      KAFKA_BROKERS: '127.0.0.1:9',
      SCHEMA_REGISTRY_URL: 'http://127.0.0.1:9',
      DATABASE_URL: 'postgres://h/d',
    },
    ...{ ENCRYPTION_KEYS: `1:${Buffer.alloc(32).toString('base64')}`, MERCHANT_ID: 'acme' },
    ...{ FINGERPRINT_KEY: Buffer.alloc(32).toString('base64'), GATEWAY_BASE_URL: 'http://127.0.0.1:9' },
    ...{ GATEWAY_MCH_ID: '1', GATEWAY_KEY: 'a-key-of-this-test' },
  }
  const command = ['--prefix', root, 'run', '--ignore-scripts', 'ingest', '--', 'salary.csv', '--batch', 'a']
  const { stdout, stderr } = spawnSync('npm', command, { cwd: folder, env, encoding: 'utf8' })
  assert.match(stdout, /Nothing was published: ingest cannot read the file/, stderr)
})
