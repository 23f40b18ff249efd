import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import type { Stack } from '../../devkit/local/servers/stack.ts'
import { freshDir, isAlive, OTHERS_GIVEN, query, until, usedDir } from '../../devkit/local/servers/testing.ts'

const ask = (stack: Stack, statement: string) => query(stack.databaseUrl, statement)
const portOf = (stack: Stack) => Number(new URL(stack.databaseUrl).port)

const shared = freshDir({ after })

test('a second start in the same directory is refused, and says which process holds it', async (t) => {
  const dir = usedDir(t, shared)
  const stack = await dir.start({ given: OTHERS_GIVEN })
  await assert.rejects(dir.start({ given: OTHERS_GIVEN }), new RegExp(`held by process ${process.pid}`))
  assert.deepEqual(await ask(stack, 'select 1 as one'), [{ one: 1 }], 'the first one is not disturbed')
})

test('a start during another’s stop reports that', async (t) => {
  const dir = usedDir(t, shared)
  const stack = await dir.start({ given: OTHERS_GIVEN })
  const stopped = stack.stop()
  await assert.rejects(
    dir.start({ given: OTHERS_GIVEN }),
    new RegExp(`is still stopping, in process ${process.pid}`),
  )
  await stopped
  await dir.start({ given: OTHERS_GIVEN })
})

test('data and addresses survive a restart, and fresh starts over', async (t) => {
  const dir = freshDir(t)
  const first = await dir.start({ given: OTHERS_GIVEN })
  await ask(first, 'create table kept as select 7 as seven')
  await first.stop()

  const second = await dir.start({ given: OTHERS_GIVEN })
  assert.equal(second.databaseUrl, first.databaseUrl)
  assert.deepEqual(await ask(second, 'select seven from kept'), [{ seven: 7 }])
  await second.stop()

  const third = await dir.start({ given: OTHERS_GIVEN, fresh: true })
  await assert.rejects(ask(third, 'select seven from kept'), /does not exist/)
  assert.notEqual(new URL(third.databaseUrl).password, new URL(first.databaseUrl).password)
})

test('a port that another program took since the last run is left to it', async (t) => {
  const dir = usedDir(t, shared)
  const first = await dir.start({ given: OTHERS_GIVEN })
  await first.stop()
  await occupy(t, portOf(first))

  const second = await dir.start({ given: OTHERS_GIVEN })
  assert.notEqual(portOf(second), portOf(first))
  assert.deepEqual(await ask(second, 'select 1 as one'), [{ one: 1 }])
})

test('two stacks that want the same port and start at once both come up', async (t) => {
  const [a, b] = [freshDir(t), freshDir(t)]
  const stacks = await Promise.all([a, b].map((dir) => dir.start({ given: OTHERS_GIVEN })))
  const port = portOf(stacks[0]!)
  await Promise.all(stacks.map((stack) => stack.stop()))
  for (const dir of [a, b])
    writeFileSync(path.join(dir.path, 'ports.json'), JSON.stringify({ postgres: port }))

  const again = await Promise.all([a, b].map((dir) => dir.start({ given: OTHERS_GIVEN })))
  assert.notEqual(portOf(again[0]!), portOf(again[1]!))
  for (const stack of again) assert.deepEqual(await ask(stack, 'select 1 as one'), [{ one: 1 }])
})

test('given servers are passed through and not started', async (t) => {
  const given = {
    ...OTHERS_GIVEN,
    databaseUrl: 'postgres://db.invalid/x',
    gatewayBaseUrl: 'http://gateway.invalid',
  }
  const stack = await freshDir(t).start({ given, sandbox: true })
  assert.deepEqual(stack.pids, {})
  assert.equal(stack.databaseUrl, given.databaseUrl)
  assert.deepEqual(stack.kafkaBrokers, given.kafkaBrokers)
  assert.equal(stack.schemaRegistryUrl, given.schemaRegistryUrl)
  assert.equal(stack.gatewayBaseUrl, given.gatewayBaseUrl)
  assert.equal(stack.gatewayKey, undefined)
})

test('a server that ends unasked is reported with its log, one that was killed on purpose is not', async (t) => {
  const reported: string[] = []
  const log = { error: (_: object, message: string) => reported.push(message) }
  const stack = await usedDir(t, shared).start({ given: OTHERS_GIVEN, log: log as never })
  await stack.kill('postgres')
  await stack.restart('postgres')
  const pid = stack.pids.postgres!
  process.kill(pid, 'SIGTERM')
  await until('reported', () => reported.length > 0)
  assert.equal(reported.length, 1)
  assert.match(
    reported[0]!,
    /^postgres ended with code 0\. Its log, .*postgres\.log, ends with:\n.*shut down/s,
  )
  assert.equal(stack.pids.postgres, undefined)
})

test('a failed start reports the reason and the log, and leaves neither a server nor a lock', async (t) => {
  const dir = freshDir(t)
  const first = await dir.start({ given: OTHERS_GIVEN })
  await first.stop()
  const version = path.join(dir.path, 'data', 'postgres', 'PG_VERSION')
  writeFileSync(version, '12\n')
  await assert.rejects(
    dir.start({ given: OTHERS_GIVEN }),
    /postgres did not start, it ended with code 1\. Its log, .*postgres\.log, ends with:\n.*version 12/s,
  )
  writeFileSync(version, '18\n')
  await dir.start({ given: OTHERS_GIVEN })
})

test('the sandbox comes with its own merchant and keeps its key', async (t) => {
  const dir = freshDir(t)
  const given = { ...OTHERS_GIVEN, databaseUrl: 'postgres://db.invalid/x' }
  const first = await dir.start({ given, sandbox: true })
  assert.equal((await fetch(`${first.gatewayBaseUrl}/healthz`)).status, 200)
  const pid = first.pids.sandbox!
  await first.stop()
  assert.equal(isAlive(pid), false)
  const second = await dir.start({ given, sandbox: true })
  assert.deepEqual([second.gatewayMchId, second.gatewayKey], [first.gatewayMchId, first.gatewayKey])
})

async function occupy(t: TestContext, port: number): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port }, resolve))
  t.after(() => server.close())
}
