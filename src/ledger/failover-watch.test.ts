import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { drop, freshName, onServer, urlOf } from '../../test/emptied-databases.ts'
import { silentLogger } from '../platform/log.ts'
import { connectDatabase, type Sql, sql, withSession } from '../platform/postgres/postgres.ts'
import { changedSince, isOneStep, watchServer } from './failover-watch.ts'
import { fencedMerchants } from './ledger.ts'
import { notedServer, type ServerIdentity, serverIdentity } from './sql/server-identity.ts'

const noted = sql<ServerIdentity>`
  update ledger_server set system_identifier = ${'systemIdentifier'}, timeline = ${'timeline'}, database_oid = ${'databaseOid'}`
const known = sql<object>`
  insert into merchants (merchant_id, settings_hash, recovering_since, recovering_by, recovering_reason)
  values ('acme', 'h', null, null, null), ('umbrella', 'h', now(), 'asha', 'disk lost')`
const fences = sql<object, { merchantId: string; recoveringBy: string; recoveringReason: string }>`
  select merchant_id, recovering_by, recovering_reason from merchants order by merchant_id`

const open = (url: string, connections = 4) =>
  connectDatabase({
    ...{ url, connections, applicationName: 'payoutd-test' },
    onConnect: watchServer(['acme', 'globex'], silentLogger),
  })

test('payoutd fences every merchant before it uses a connection to a server with another history', async (t) => {
  const { db, url } = await freshDatabase(t)
  const [server] = (await db.run(serverIdentity, {})) as [ServerIdentity]
  await db.run(known, {})

  const first = open(url)
  await Promise.all(Array.from({ length: 4 }, () => fencedMerchants(first)))
  await first.close()
  assert.deepEqual(await db.run(notedServer, {}), [server])
  assert.deepEqual([...(await fencedMerchants(db))], ['umbrella'])

  for (const other of [
    { ...server, timeline: server.timeline + 1n },
    { ...server, systemIdentifier: '1234567890123456789' },
  ]) {
    await db.run(
      sql<object>`update merchants set recovering_since = null, recovering_by = null,
      recovering_reason = null where merchant_id <> 'umbrella'`,
      {},
    )
    await db.run(noted, other)
    const second = open(url)
    const each = await Promise.all(Array.from({ length: 8 }, () => fencedMerchants(second)))
    await second.close()
    for (const fenced of each) assert.deepEqual([...fenced].sort(), ['acme', 'globex', 'umbrella'])
    const [acme, globex, umbrella] = await db.run(fences, {})
    assert.deepEqual([acme?.recoveringBy, globex?.recoveringBy], ['payoutd', 'payoutd'])
    assert.match(acme?.recoveringReason ?? '', /timeline \d+ to \d+|another cluster/)
    assert.equal(umbrella?.recoveringBy, 'asha')
    assert.match(umbrella?.recoveringReason ?? '', /^disk lost; the database .* (timeline|cluster)/)
    assert.deepEqual(await db.run(notedServer, {}), [server])
  }
})

for (const [what, isStarted, fenced] of [
  [
    'a copy of a ledger in the same server, as a loaded dump is, fences every merchant',
    true,
    ['acme', 'globex', 'umbrella'],
  ],
  ['a copy of a ledger that no payoutd has used fences nobody', false, ['umbrella']],
] as const)
  test(what, async (t) => {
    const { db, url } = await freshDatabase(t)
    await db.run(known, {})
    if (isStarted) {
      const first = open(url)
      await fencedMerchants(first)
      await first.close()
    }
    const server = process.env.TEST_DATABASE_URL as string
    const copy = freshName()
    await onServer(server, async (session) => {
      const name = new URL(url).pathname.slice(1)
      await session.query(
        'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1',
        [name],
      )
      await session.query(`create database ${copy} template ${name}`)
    })
    t.after(() => drop(server, copy))
    const second = open(urlOf(server, copy))
    t.after(() => second.close())
    assert.deepEqual([...(await fencedMerchants(second))].sort(), fenced)
    const [acme] = await second.run(fences, {})
    if (isStarted)
      assert.match(acme?.recoveringReason ?? '', /^the database is a copy .*, or a dump loaded there/)
    assert.deepEqual(await second.run(notedServer, {}), await second.run(serverIdentity, {}))
    const third = open(urlOf(server, copy))
    t.after(() => third.close())
    assert.deepEqual(await third.run(fences, {}), await second.run(fences, {}))
  })

test('if the process that noted a new server did not know a merchant, the process that has it in its settings fences it', async (t) => {
  const { db } = await freshDatabase(t)
  const [server] = (await db.run(serverIdentity, {})) as [ServerIdentity]
  const before = { ...server, timeline: server.timeline - 1n }
  const watch = watchServer(['acme', 'newcomer'], silentLogger)
  await watch({
    run: async <P, R>(statement: Sql<P, R>, params: P) =>
      (statement as unknown) === serverIdentity ? ([before] as R[]) : db.run(statement, params),
  })
  await db.run(known, {})
  await db.run(noted, server)
  await watch(db)
  assert.deepEqual([...(await fencedMerchants(db))].sort(), ['newcomer', 'umbrella'])
})

test('a process that has seen the successor notices when a former primary is back, and fences nobody twice', () => {
  const server = { systemIdentifier: '1', timeline: 2n, databaseOid: 16_384n }
  const former = { ...server, timeline: 1n }
  const successor = { ...server, timeline: 3n }
  assert.equal(changedSince(null, null, server), null)
  assert.equal(changedSince(server, server, server), null)
  assert.equal(changedSince(former, server, former), server)
  assert.equal(changedSince(successor, server, successor), null, 'another process has fenced')
  const copy = { ...server, databaseOid: 16_999n }
  assert.equal(changedSince(copy, server, copy), null, 'another process has fenced the copy')
  assert.equal(changedSince(server, copy, server), copy, 'the database of before the copy is back')
  assert.equal(
    changedSince(former, successor, server),
    successor,
    'the ledger has seen less than this process',
  )
})

test('a failover is one step of one server to the next of its timelines', () => {
  const server = { systemIdentifier: '1', timeline: 2n, databaseOid: 16_384n }
  for (const [now, isOne] of [
    [{ ...server, timeline: 3n }, true],
    [{ ...server, timeline: 4n }, false],
    [{ ...server, timeline: 1n }, false],
    [{ ...server, systemIdentifier: '2', timeline: 3n }, false],
    [{ ...server, databaseOid: 16_999n, timeline: 3n }, false],
  ] as const)
    assert.equal(isOneStep(server, now), isOne)
})

test('an ordinary role may read the identity of a server, and payoutd uses no connection that it cannot check', async (t) => {
  const { url } = await freshDatabase(t)
  await withSession(url, async (session) => {
    await session.query('create role plain_watcher')
    try {
      await session.query('set role plain_watcher')
      await session.query(serverIdentity.text)
    } finally {
      await session.query('reset role; drop role plain_watcher')
    }
  })
  const refused = connectDatabase({
    ...{ url, connections: 1, applicationName: 'payoutd-test' },
    onConnect: async () => {
      throw new Error('not this one')
    },
  })
  t.after(() => refused.close())
  await assert.rejects(fencedMerchants(refused), /not this one/)
})
