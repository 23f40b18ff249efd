import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { testEnvironment } from '../../test/ledger.ts'
import { readConfig } from '../config/config.ts'
import { proveKeys } from '../operations/key-proofs.ts'
import { payoutd } from './cli.fixture.ts'

test('serve --help names the roles and says that it has all of them', async () => {
  const { stdout } = await payoutd(['serve', '--help'], {})
  assert.match(stdout, /--roles <list> [^(]*\(default:\s+all\)/)
})

test('serve refuses to start with another key than the one in use, and says what to do', async (t) => {
  const database = await freshDatabase(t)
  const env = testEnvironment(database)
  const { sealing, fingerprintKey } = readConfig(env)
  await proveKeys(database.db, { sealing, fingerprint: fingerprintKey })
  const { code, stderr } = await payoutd(['serve'], {
    ...env,
    ENCRYPTION_KEYS: `1:${randomBytes(32).toString('base64')}`,
  })
  assert.equal(code, 1)
  assert.equal(
    stderr,
    'key 1 in ENCRYPTION_KEYS does not open what was sealed with key 1: ' +
      'put the former key back under 1, and give a new one a higher id\n',
  )
})
