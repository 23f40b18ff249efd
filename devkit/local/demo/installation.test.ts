import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { ExpectedFailure } from '../../../src/platform/expected-failure.ts'
import { silentLogger } from '../../../src/platform/log.ts'
import { startInstallation } from './installation.ts'

/** A failing start: its message, and whether it got as far as creating its directory. */
async function failure(
  t: TestContext,
  given: NodeJS.ProcessEnv,
): Promise<{ message: string; began: boolean }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'payoutd-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const dir = path.join(folder, 'stack')
  const options = { dir, fresh: false, ports: 'any', given, log: silentLogger } as const
  try {
    await startInstallation({ ...options, onStep: () => undefined })
  } catch (error) {
    assert.ok(error instanceof ExpectedFailure)
    return { message: error.message, began: existsSync(dir) }
  }
  return assert.fail('it started')
}

const GATEWAY = {
  GATEWAY_BASE_URL: 'http://127.0.0.1:1',
  GATEWAY_MCH_ID: '1000100',
  GATEWAY_KEY: 'invented',
}

test('invalid settings are reported before any server starts', async (t) => {
  const wrong: NodeJS.ProcessEnv[] = [
    { PUBLIC_PORT: 'abc' },
    { SCHEMA_REGISTRY_URL: 'nonsense' },
    { ...GATEWAY, GATEWAY_KEY: '' },
  ]
  for (const given of wrong) {
    const { message, began } = await failure(t, given)
    assert.match(
      message,
      /^settings are missing or wrong:\n {2}(PUBLIC_PORT|SCHEMA_REGISTRY_URL|GATEWAY_KEY) [^\n]+$/,
    )
    assert.equal(began, false)
  }
})

test('a given database that does not answer is reported with what to do about it', async (t) => {
  const { message } = await failure(t, {
    ...GATEWAY,
    DATABASE_URL: 'postgres://postgres:a-secret-word@127.0.0.1:1/payoutd',
    KAFKA_BROKERS: process.env.TEST_KAFKA_BROKERS,
    SCHEMA_REGISTRY_URL: process.env.TEST_SCHEMA_REGISTRY_URL,
  })
  assert.equal(
    message,
    'the database 127.0.0.1:1/payoutd refuses connections: start it, or correct DATABASE_URL',
  )
})
