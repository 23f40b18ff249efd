import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { Kafka, logLevel } from 'kafkajs'
import { freshDir, isAlive, OTHERS_GIVEN, query, until, usedDir } from '../../devkit/local/servers/testing.ts'

const OWNER = fileURLToPath(new URL('../../devkit/local/servers/processes/owner.fixture.ts', import.meta.url))

type Owner = { child: ChildProcess; lines: Interface; pids: number[]; databaseUrl: string }

/** A process that owns a stack, in its own process group as a shell would start it. */
async function startOwner(t: TestContext, dir: string): Promise<Owner> {
  const child = spawn(process.execPath, [OWNER, dir, JSON.stringify(OTHERS_GIVEN)], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)
  const [line] = (await once(lines, 'line')) as [string]
  const { pids, databaseUrl } = JSON.parse(line)
  return { child, lines, pids: Object.values(pids), databaseUrl }
}

const shared = freshDir({ after })

for (const signal of ['SIGKILL', 'SIGTERM', 'SIGHUP'] as const) {
  test(`no server outlives a process that ${signal} ended`, async (t) => {
    const { child, pids } = await startOwner(t, shared.path)
    assert.equal(pids.length, 1)
    // To the whole group, as a terminal does: the watchdog must not be in it.
    process.kill(-child.pid!, signal)
    await until('the servers are gone', () => !pids.some(isAlive))
  })
}

test('Ctrl-C reaches only the owner, so that it can stop the servers in order', async (t) => {
  const { child, lines, databaseUrl } = await startOwner(t, shared.path)
  const interrupted = once(lines, 'line')
  process.kill(-child.pid!, 'SIGINT')
  assert.deepEqual(await interrupted, ['interrupted'])
  assert.deepEqual(await query(databaseUrl, 'select 1 as one'), [{ one: 1 }])
})

test('committed data survives SIGKILL of the owner, and the next start waits for the old servers', async (t) => {
  const { child, databaseUrl } = await startOwner(t, shared.path)
  await query(databaseUrl, 'create table kept as select 7 as seven')
  child.kill('SIGKILL')
  await once(child, 'exit')

  const stack = await usedDir(t, shared).start({ given: OTHERS_GIVEN })
  assert.deepEqual(await query(stack.databaseUrl, 'select seven from kept'), [{ seven: 7 }])
})

test('the next start ends servers whose owner and watchdog were both killed', async (t) => {
  const { child, pids } = await startOwner(t, shared.path)
  process.kill(watchdogOf(child.pid!), 'SIGKILL')
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.ok(pids.every(isAlive), 'nobody is left to end them')

  await usedDir(t, shared).start({ given: OTHERS_GIVEN })
  assert.ok(!pids.some(isAlive))
})

test('Kafka, Postgres and the registry keep their data and addresses through SIGKILL and restart', async (t) => {
  const stack = await freshDir(t).start()
  const subject = { subject: 'a-value' }
  const schema = '{"type":"record","name":"A","namespace":"n","fields":[]}'
  const registry = new SchemaRegistry({ host: stack.schemaRegistryUrl })
  const { id } = await registry.register({ type: SchemaType.AVRO, schema }, subject)
  await produce(stack.kafkaBrokers, 'one')

  for (const part of ['kafka', 'postgres', 'registry'] as const) {
    const killed = stack.pids[part]
    await stack.kill(part)
    assert.equal(stack.pids[part], undefined)
    await stack.restart(part)
    assert.notEqual(stack.pids[part], killed)
  }

  assert.equal(await produce(stack.kafkaBrokers, 'two'), '1', 'the second record has offset 1')
  assert.equal(await registry.getLatestSchemaId(subject.subject), id)
})

/** Writes one record to the only partition of a topic and returns its offset. */
async function produce(brokers: string[], value: string): Promise<string | undefined> {
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  const producer = kafka.producer()
  try {
    await admin.connect()
    await admin.createTopics({ topics: [{ topic: 'kept' }], waitForLeaders: true })
    await producer.connect()
    const [written] = await producer.send({ topic: 'kept', messages: [{ value }] })
    return written?.baseOffset
  } finally {
    await admin.disconnect()
    await producer.disconnect()
  }
}

function watchdogOf(owner: number): number {
  const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' })
  const [, pid] = new RegExp(`^ *(\\d+) +${owner} +/bin/sh`, 'm').exec(processes) ?? []
  if (!pid) throw new Error('no watchdog')
  return Number(pid)
}
