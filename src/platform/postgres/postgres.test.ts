import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { eventually } from '../running/eventually.fixture.ts'
import { blame } from './faults.ts'
import { connectDatabase, type Database, sql, withSession } from './postgres.ts'

const touch = sql<
  { id: number },
  { hits: number }
>`update counters set hits = hits + 1 where id = ${'id'} returning hits`

async function counters(db: Database): Promise<void> {
  await db.run(sql<object>`create table counters (id int primary key, hits int not null default 0)`, {})
  await db.run(sql<object>`insert into counters values (1), (2)`, {})
}

test('two deadlocked transactions both end: PostgreSQL’s victim runs again', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await counters(db)
  let runs = 0
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const crosswise = (own: number, other: number, locked: () => void, theirs: Promise<void>) =>
    db.transaction('test', async (tx) => {
      runs++
      await tx.run(touch, { id: own })
      locked()
      await theirs
      await tx.run(touch, { id: other })
    })
  await Promise.all([
    crosswise(1, 2, first.resolve, second.promise),
    crosswise(2, 1, second.resolve, first.promise),
  ])
  const rows = await db.run(sql<object, { hits: number }>`select hits from counters`, {})
  assert.deepEqual(rows, [{ hits: 2 }, { hits: 2 }])
  assert.ok(runs > 2, 'no deadlock happened')
})

test('a commit is on the server’s disk, whatever was tuned there, and stricter or looser standby settings stay', async (t) => {
  const { db, url } = await freshDatabase(t, { migrated: false })
  const name = new URL(url).pathname.slice(1)
  const shown = sql<object, { setting: string; source: string }>`
    select setting, source from pg_settings where name = 'synchronous_commit'`
  for (const [chosen, used, source] of [
    ['off', 'on', 'session'],
    ['on', 'on', 'session'],
    ...['local', 'remote_write', 'remote_apply'].map((other) => [other, other, 'database']),
  ] as [string, string, string][]) {
    const choose = { fragment: `alter database "${name}" set synchronous_commit = ${chosen}` }
    await db.run(sql<object>`${choose}`, {})
    const pool = connectDatabase({ url, connections: 1, applicationName: 'payoutd-test' })
    assert.deepEqual(await pool.run(shown, {}), [{ setting: used, source }])
    await pool.close()
    const { rows } = await withSession(url, (session) => session.query(shown.text))
    assert.deepEqual(rows, [{ setting: used, source }])
  }
})

test('the settings that statements rely on hold on every connection, whatever the database and the URL say', async (t) => {
  const { db, url } = await freshDatabase(t, { migrated: false })
  const name = { fragment: `"${new URL(url).pathname.slice(1)}"` }
  await db.run(sql<object>`alter database ${name} set default_transaction_isolation = 'serializable'`, {})
  await db.run(sql<object>`alter database ${name} set datestyle = 'German'`, {})
  await db.run(sql<object>`alter database ${name} set statement_timeout = 500`, {})
  await db.run(sql<object>`alter database ${name} set idle_in_transaction_session_timeout = 500`, {})
  await db.run(sql<object>`alter database ${name} set idle_session_timeout = 500`, {})
  const given = `${url}?options=${encodeURIComponent('-c enable_seqscan=on -c transaction_timeout=0 -c work_mem=5MB')}`
  const pool = connectDatabase({ url: given, connections: 1, applicationName: 'payoutd-test' })
  t.after(() => pool.close())
  const shown = sql<object, { name: string; setting: string }>`
    select name, setting from pg_settings
    where name in ('transaction_isolation', 'DateStyle', 'TimeZone', 'enable_seqscan', 'transaction_timeout', 'work_mem')
      or name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')
    order by lower(name)`
  const settings = await pool.transaction('test', (tx) => tx.run(shown, {}))
  assert.deepEqual(Object.fromEntries(settings.map((each) => [each.name, each.setting])), {
    DateStyle: 'ISO, DMY',
    enable_seqscan: 'off',
    idle_in_transaction_session_timeout: '0',
    idle_session_timeout: '0',
    statement_timeout: '0',
    TimeZone: 'UTC',
    transaction_isolation: 'read committed',
    transaction_timeout: '10000',
    work_mem: '5120',
  })
  const isolation = await withSession(given, (session) => session.query('show transaction_isolation'))
  assert.deepEqual(isolation.rows, [{ transaction_isolation: 'read committed' }])
})

test('a failed transaction leaves nothing behind, and its connection works again', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await counters(db)
  for (let i = 0; i < 10; i++) {
    await assert.rejects(
      db.transaction('test', async (tx) => {
        await tx.run(touch, { id: 1 })
        throw new Error('a bug')
      }),
      /a bug/,
    )
  }
  const [row] = await db.run(sql<object, { hits: number }>`select hits from counters where id = 1`, {})
  assert.equal(row?.hits, 0)
})

test('a connection lost inside a transaction fails that transaction and nothing else', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await counters(db)
  const end = sql<{ pid: number }>`select pg_terminate_backend(${'pid'})`
  const alive = sql<{ pid: number }, { pid: number }>`select pid from pg_stat_activity where pid = ${'pid'}`
  const work = db.transaction('test', async (tx) => {
    const [row] = await tx.run(sql<object, { pid: number }>`select pg_backend_pid() as pid`, {})
    await db.run(end, { pid: row?.pid as number })
    // The driver reports the loss between two statements, while nothing waits for an answer.
    while ((await db.run(alive, { pid: row?.pid as number })).length > 0);
    await tx.run(touch, { id: 1 })
  })
  await assert.rejects(work)
  assert.equal((await db.run(touch, { id: 2 }))[0]?.hits, 1)
})

test('values come back exact: bigint beyond 2^53, times in milliseconds, names in camel case', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  const at = Date.UTC(2026, 10, 30, 9, 15, 30, 123)
  const [row] = await db.run(
    sql<{ amount: bigint; at: number }, { anAmount: bigint; atTime: number; nothingAtAll: null }>`
      select ${'amount'}::bigint as an_amount, to_timestamp(${'at'}::float8 / 1000) as at_time, null as nothing_at_all`,
    { amount: 2n ** 60n + 1n, at },
  )
  assert.deepEqual(row, { anAmount: 2n ** 60n + 1n, atTime: at, nothingAtAll: null })
})

test('the clock of a transaction is the database’s own, and stands still', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await db.transaction('test', async (tx) => {
    const [row] = await tx.run(sql<object, { now: number }>`select now() as now`, {})
    assert.equal(tx.now, row?.now)
  })
})

test('an error shows whether the data or the database is at fault, or that it is unclear', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await counters(db)
  const failure = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => assert.fail(),
      (error: unknown) => error,
    )
  const blamed = async (text: string, on: Database = db) =>
    blame(await failure(on.run(sql<object>(Object.assign([text], { raw: [text] })), {})))
  assert.equal(await blamed('insert into counters values (1)'), 'data')
  assert.equal(await blamed(`select '{"a":"\\ud800"}'::jsonb`), 'data')
  await db.run(sql<object>`create table long (key text primary key)`, {})
  const letters = `(select string_agg(md5(i::text), '') from generate_series(1, 1000) i)`
  assert.equal(await blamed(`insert into long values (${letters})`), 'data')
  assert.equal(await blamed('select * from nowhere'), 'database')
  assert.equal(await blamed(`do $$ begin raise exception using errcode = '57P01'; end $$`), 'database')
  assert.equal(await blamed(`do $$ begin raise exception using errcode = 'XX001'; end $$`), 'database')
  assert.equal(await blamed(`do $$ begin raise exception using errcode = 'XX000'; end $$`), 'unclear')
  assert.equal(blame(new TypeError('a bug')), 'unclear')
  const away = connectDatabase({
    url: 'postgres://127.0.0.1:9/none',
    connections: 1,
    applicationName: 'test',
  })
  t.after(() => away.close())
  assert.equal(await blamed('select 1', away), 'database')
  assert.equal(blame(await failure(away.transaction('test', async () => undefined))), 'database')
})

test('text is stored well-formed, whatever it was', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  const texts = ['a\0b', '\ud800', 'é🙂']
  const [row] = await db.run(
    sql<{ texts: string[] }, { kept: string[] }>`select ${'texts'}::text[] as kept`,
    {
      texts,
    },
  )
  assert.deepEqual(row?.kept, ['a\ufffdb', '\ufffd', 'é🙂'])
})

test('a statement never switches to a scan of the whole table', async (t) => {
  const { db } = await freshDatabase(t, { migrated: false })
  await counters(db)
  const plan = await db.run(
    sql<object, { queryPlan: string }>`explain select * from counters where id = 1`,
    {},
  )
  assert.match(JSON.stringify(plan), /Index/)
  assert.doesNotMatch(JSON.stringify(plan), /Seq Scan/)
})

/** What a server sends to ask for a password, messages of type `R`: the mechanism, and its first bytes. */
const WANTS_PASSWORD = [
  [10, 'SCRAM-SHA-256\0\0'],
  [11, 'r=abc,s=c2FsdA==,i=4096'],
] as const

const authentication = ([step, text]: (typeof WANTS_PASSWORD)[number]): Buffer => {
  const head = Buffer.alloc(9, 'R')
  head.writeInt32BE(8 + text.length, 1)
  head.writeInt32BE(step, 5)
  return Buffer.concat([head, Buffer.from(text)])
}

test('a connection that cannot log in is closed, so that the process can end', async (t) => {
  const { promise: isUsed, resolve: use } = Promise.withResolvers<Socket>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    t.after(() => socket.destroy())
    const says = WANTS_PASSWORD.map(authentication)
    socket.on('data', () => socket.write(says.shift() ?? ''))
    use(socket)
  })
  t.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`
  const pool = connectDatabase({ url, connections: 1, applicationName: 'payoutd-test' })
  await assert.rejects(pool.run(sql<object>`select 1`, {}), /password/)
  const socket = await isUsed
  await eventually('it to be gone', () => socket.destroyed, 5_000)
  await pool.close()
  await assert.rejects(
    withSession(url, async () => undefined),
    /password/,
  )
  const open = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  await eventually('the other to be gone', async () => (await open()) === 0, 5_000)
})
