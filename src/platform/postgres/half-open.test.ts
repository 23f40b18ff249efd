import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshDatabase } from '../../../test/database.ts'
import { silentWire } from '../wire.fixture.ts'
import { connectDatabase, sql } from './postgres.ts'

const backend = sql<object, { pid: number }>`select pg_backend_pid() as pid`
/** The server ends a transaction after this time; the client waits one and a half times as long for an answer. */
const LIMIT_MS = 400
const GIVEN_UP_MS = 5_000

/** How the work ended, within the time in which the client must have given it up. */
const endOf = (work: Promise<unknown>): Promise<string> =>
  Promise.race([
    work.then(
      () => 'answered',
      (error: Error) => error.message,
    ),
    new Promise<string>((resolve) => setTimeout(() => resolve('still waiting'), GIVEN_UP_MS).unref()),
  ])

async function wired(t: TestContext) {
  const { url } = await freshDatabase(t, { migrated: false })
  const target = new URL(url)
  const wire = await silentWire({ host: target.hostname, port: Number(target.port) })
  target.hostname = '127.0.0.1'
  target.port = String(wire.port)
  const db = connectDatabase({
    url: target.href,
    connections: 1,
    applicationName: 'payoutd-test',
    transactionTimeoutMs: LIMIT_MS,
  })
  t.after(() => wire.close())
  return { wire, db }
}

test('a statement on a connection that went silent fails, and the next one has a new connection', async (t) => {
  const { wire, db } = await wired(t)
  const [before] = await db.run(backend, {})
  wire.silence()
  assert.equal(await endOf(db.run(backend, {})), 'Query read timeout')
  const [after] = await db.run(backend, {})
  assert.notEqual(after?.pid, before?.pid)
  await db.close()
})

test('a transaction on a silent connection fails, at its begin, in its middle and at its commit', async (t) => {
  const { wire, db } = await wired(t)
  await db.run(backend, {})
  wire.silence()
  assert.equal(await endOf(db.transaction('test', async () => undefined)), 'Query read timeout')
  const middle = db.transaction('test', async (tx) => {
    wire.silence()
    await tx.run(backend, {})
  })
  assert.equal(await endOf(middle), 'Query read timeout')
  const commit = db.transaction('test', async (tx) => {
    await tx.run(backend, {})
    wire.silence()
  })
  assert.equal(await endOf(commit), 'Query read timeout')
  assert.equal((await db.run(backend, {})).length, 1)
  await db.close()
})

test('a statement on a frozen backend fails as well', async (t) => {
  const { db } = await wired(t)
  const [row] = await db.run(backend, {})
  const pid = row?.pid as number
  process.kill(pid, 'SIGSTOP')
  try {
    assert.equal(await endOf(db.run(backend, {})), 'Query read timeout')
    assert.notEqual((await db.run(backend, {}))[0]?.pid, pid)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await db.close()
})

test('a pool closes even if one of its connections went silent', async (t) => {
  const { wire, db } = await wired(t)
  await db.run(backend, {})
  wire.silence()
  assert.equal(await endOf(db.close()), 'answered')
})
