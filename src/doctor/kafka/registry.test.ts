import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testLedger } from '../../../test/ledger.ts'
import { schemaSubjects, topicNames } from '../../messages/topics.ts'
import { createHttpServer, listen } from '../../platform/http.ts'
import { systemIds } from '../../platform/ids.ts'
import type { RegistryConnection } from '../../platform/registry/registry.ts'
import { systemClock } from '../../platform/running/clock.ts'
import { examine } from '../examine.ts'
import { checkSchemas, registryChecks } from './registry.ts'

async function findings(connection: RegistryConnection, prefix: string) {
  const checks = registryChecks(connection, schemaSubjects(topicNames(prefix)), 'http://registry')
  const found = await examine(checks, {
    addresses: { database: '', kafka: '', registry: 'http://registry' },
    limitMs: 10_000,
    clock: systemClock,
    onFound: () => undefined,
  })
  return found.map(({ finding }) => finding)
}

test('schemas that payoutd registered are found, with their compatibility', async (t) => {
  const { config } = await testLedger(t)
  const [registry, schemas] = await findings(config.registry, config.topicPrefix)
  assert.equal(registry?.state, 'good')
  assert.equal(schemas?.state, 'good')
})

test('schemas that nobody registered are reported missing, and the check registers none', async (t) => {
  const { config } = await testLedger(t)
  const prefix = `t${systemIds.uuid()}.`
  for (const _ of ['first', 'second']) {
    const [, schemas] = await findings(config.registry, prefix)
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
  const [registry, schemas] = await findings({ url }, '')
  assert.match(registry?.what ?? '', /is not a schema registry/)
  assert.equal(schemas?.state, 'unchecked')
})

test('a registry that refuses the password says which settings to correct', async (t) => {
  const server = createHttpServer()
  server.get('/config', (_, reply) => reply.code(401).send({}))
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const [registry] = await findings({ url, auth: { username: 'payoutd', password: 'wrong' } }, '')
  assert.ok(registry?.state === 'wrong')
  assert.match(registry.todo, /SCHEMA_REGISTRY_PASSWORD/)
})
