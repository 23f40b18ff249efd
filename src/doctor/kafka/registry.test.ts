import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { testLedger } from '../../../test/ledger.ts'
import { withNotedIds } from '../../ledger/schema-ids.ts'
import { schemaSubjects, topicNames } from '../../messages/topics.ts'
import { createHttpServer, listen } from '../../platform/http.ts'
import { silentLogger } from '../../platform/log.ts'
import type { Database } from '../../platform/postgres/postgres.ts'
import {
  connectRegistry,
  type Registry,
  type RegistryConnection,
  type SchemaSubject,
} from '../../platform/registry/registry.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { examine, good } from '../examine.ts'
import { checkSchemas, registryChecks } from './registry.ts'

async function findings(connection: RegistryConnection, prefix: string, db: Database) {
  const checks = registryChecks(connection, schemaSubjects(topicNames(prefix)), 'http://registry', db)
  const migrated = { name: 'migrations', run: async () => good('') }
  const [, ...found] = await examine([migrated, ...checks], {
    addresses: { database: '', kafka: '', registry: 'http://registry' },
    limitMs: 10_000,
    clock: systemClock,
    onFound: () => undefined,
  })
  return found.map(({ finding }) => finding)
}

test('schemas that payoutd registered are found, with their compatibility', async (t) => {
  const { config, ledger } = await testLedger(t)
  const found = await findings(config.registry, config.topicPrefix, ledger.db)
  assert.deepEqual(
    found.map(({ state }) => state),
    ['good', 'good', 'good'],
  )
})

test('a schema whose id is not the noted one is wrong, with both ids', async (t) => {
  const { config, ledger } = await testLedger(t)
  const [subject] = schemaSubjects(ledger.topics) as [SchemaSubject]
  const id = await connectRegistry(config.registry).lookUp(subject)
  const other: Registry = { ...connectRegistry(config.registry), lookUp: async () => 1_000_007 }
  await withNotedIds(other, ledger.db, silentLogger).lookUp(subject)
  const [, , ids] = await findings(config.registry, config.topicPrefix, ledger.db)
  assert.match(
    ids?.what ?? '',
    new RegExp(`PayoutRequested under the id 1000007, and now has it under ${id}$`),
  )
})

test('schemas that nobody registered are reported missing, and the check registers none', async (t) => {
  const { config, ledger } = await testLedger(t)
  const prefix = `t${randomUUID()}.`
  for (const _ of ['first', 'second']) {
    const [, schemas] = await findings(config.registry, prefix, ledger.db)
    assert.match(
      schemas?.what ?? '',
      new RegExp(`lacks .*${prefix}payout.commands-in.payoutd.PayoutRequested`),
    )
  }
})

test('a weaker compatibility than readers were promised is wrong', () => {
  const subject = {
    subject: 'payout.results-in.payoutd.PayoutResult',
    registered: true,
    wanted: 'FULL_TRANSITIVE',
  }
  assert.equal(checkSchemas([{ ...subject, compatibility: 'FULL_TRANSITIVE' }]).state, 'good')
  assert.match(checkSchemas([{ ...subject, compatibility: 'NONE' }]).what, /NONE instead of FULL_TRANSITIVE/)
  assert.match(checkSchemas([{ ...subject, compatibility: null }]).what, /of the registry instead of/)
})

test('a web server that is no registry is not mistaken for one', async (t) => {
  const server = createHttpServer()
  server.get('/config', () => ({ welcome: 'to another service' }))
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const { db } = await freshDatabase(t)
  const [registry, schemas] = await findings({ url }, '', db)
  assert.match(registry?.what ?? '', /is not a schema registry/)
  assert.equal(schemas?.state, 'unchecked')
})

test('a registry that refuses the password says which settings to correct', async (t) => {
  const server = createHttpServer()
  server.get('/config', (_, reply) => reply.code(401).send({}))
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const { db } = await freshDatabase(t)
  const [registry] = await findings({ url, auth: { username: 'payoutd', password: 'wrong' } }, '', db)
  assert.ok(registry?.state === 'wrong')
  assert.match(registry.todo, /SCHEMA_REGISTRY_PASSWORD/)
})
