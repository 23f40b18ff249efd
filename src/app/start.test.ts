import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../test/ledger.ts'
import type { Config } from '../config/config.ts'
import { migrateAll } from '../ledger/tables/migrate-all.ts'
import { silentLogger } from '../platform/log.ts'
import { ROLES, type Role, startPayoutd } from './start.ts'

const startAndStop = async (config: Config, roles: readonly Role[]) =>
  (await startPayoutd(config, new Set(roles), silentLogger)).stop()
const withoutRegistry = (config: Config): Config => ({ ...config, registry: { url: 'http://127.0.0.1:9' } })

test('a process starts while the registry is away, if one has started on this ledger before', async (t) => {
  const { config } = await testLedger(t)
  const roles = ['outcomes', 'dispatch'] as const
  await assert.rejects(
    startAndStop(withoutRegistry(config), roles),
    /could not be asked for .*PayoutRequested/,
  )
  await startAndStop(config, roles)
  await startAndStop(withoutRegistry(config), roles)
})

test('all roles start while the registry is away, once the ledger is migrated', async (t) => {
  const { config } = await testLedger(t)
  await migrateAll(config, silentLogger)
  await startAndStop(withoutRegistry(config), ROLES)
})
