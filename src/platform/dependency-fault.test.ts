import assert from 'node:assert/strict'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import kafkajs from 'kafkajs'
import { addressesOf, dependencyFaultOf, inOneLine } from './dependency-fault.ts'
import { OpenTransaction } from './kafka/open-transaction.ts'
import { connectDatabase, sql } from './postgres/postgres.ts'
import { connectRegistry } from './registry/registry.ts'

const AT = addressesOf({
  databaseUrl: 'postgres://payoutd:a-secret-word@db.example.in/payouts',
  kafka: { brokers: ['kafka-1:9092', 'kafka-2:9092'] },
  registry: { url: 'http://reader:a-secret-word@registry.example.in:8081/apis/ccompat/v7/' },
})

const anything = sql<object, { one: number }>`select 1 as one`
const noTable = sql<object>`select * from no_such_table`
const noRoom = sql<object>`do $$ begin raise 'could not extend file' using errcode = 'disk_full'; end $$`

/** The error that a statement ends in, on the test database with a changed address. */
async function errorOf(change: (url: URL) => void, statement: typeof anything | typeof noTable = anything) {
  const url = new URL(process.env.TEST_DATABASE_URL ?? '')
  change(url)
  const db = connectDatabase({ url: url.href, connections: 1, applicationName: 'payoutd-test' })
  try {
    await db.run(statement as typeof anything, {})
  } catch (error) {
    return error
  } finally {
    await db.close()
  }
  return assert.fail('the statement ended well')
}

const lineOf = (error: unknown): string | null => {
  const fault = dependencyFaultOf(error, AT)
  return fault && inOneLine(fault)
}

test('addresses are shown without their passwords', () => {
  assert.deepEqual(AT, {
    database: 'db.example.in:5432/payouts',
    kafka: 'kafka-1:9092, kafka-2:9092',
    registry: 'http://registry.example.in:8081/apis/ccompat/v7',
  })
})

test('a database that refuses connections is named, with what to do', async () => {
  const error = await errorOf((url) => {
    url.port = '9'
  })
  assert.equal(
    lineOf(error),
    'the database db.example.in:5432/payouts refuses connections: start it, or correct DATABASE_URL',
  )
})

test('a missing database, a wrong password and missing tables give three different faults', async () => {
  const lines = [
    await errorOf((url) => {
      url.pathname = '/no_such_database'
    }),
    await errorOf((url) => {
      url.password = 'wrong'
    }),
    await errorOf(() => undefined, noTable),
  ].map(lineOf)
  assert.match(lines[0] ?? '', /does not exist: create it/)
  assert.match(lines[1] ?? '', /refuses the user or the password/)
  assert.match(lines[2] ?? '', /run payoutd migrate/)
})

/** The port of a server that sends the next of these words each time it receives data, then ends the connection. */
async function serverThatSays(t: TestContext, ...words: string[]): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    const say = () => {
      const word = words.shift()
      if (word !== undefined) socket.write(word)
      else socket.end()
    }
    socket.on('data', say)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return String((server.address() as AddressInfo).port)
}

test('every mistake in DATABASE_URL gives a readable fault', async (t) => {
  const [noTls, noPostgres] = [
    await serverThatSays(t, 'S', 'no TLS'),
    await serverThatSays(t, 'HTTP/1.1 400'),
  ]
  const wrong: [(url: URL) => void, RegExp][] = [
    [
      (url) => url.searchParams.set('sslmode', 'require'),
      /has no TLS: turn it on there, or leave sslmode out/,
    ],
    [(url) => url.searchParams.set('sslmode', 'verify-full'), /has no TLS/],
    [
      (url) => Object.assign(url, { port: noTls, search: '?sslmode=require' }),
      /with TLS: correct host, port/,
    ],
    [(url) => Object.assign(url, { port: noPostgres, search: '?sslmode=require' }), /with TLS: correct host/],
    [(url) => Object.assign(url, { password: '' }), /wants a password/],
    [(url) => Object.assign(url, { username: 'nobody' }), /refuses the user or the password/],
    [(url) => Object.assign(url, { hostname: 'no-such-host.invalid' }), /has an unknown host name/],
    [(url) => Object.assign(url, { hostname: '255.255.255.255' }), /does not answer/],
    [(url) => url.searchParams.set('host', '/no/such/folder'), /has no such socket/],
    [(url) => url.searchParams.set('options', '-c nonsense=1'), /does not know an option .*"nonsense"/],
  ]
  for (const [change, said] of wrong) assert.match(lineOf(await errorOf(change)) ?? 'a stack trace', said)
})

test('a full disk of the database is reported as a full disk', async () => {
  assert.match(
    lineOf(await errorOf(() => undefined, noRoom)) ?? '',
    /has no room left on its disk: free space/,
  )
})

test('a Kafka that does not answer is named, with what payoutd tried', () => {
  const cause = new kafkajs.KafkaJSConnectionError('Connection error: connect ECONNREFUSED 10.0.0.1:9092', {})
  const error = new kafkajs.KafkaJSNumberOfRetriesExceeded(cause, { retryCount: 6, retryTime: 3_000 })
  assert.equal(
    lineOf(error),
    'Kafka at kafka-1:9092, kafka-2:9092 does not answer (connect ECONNREFUSED 10.0.0.1:9092): start it, or correct KAFKA_BROKERS (and KAFKA_SSL)',
  )
})

test('a Kafka that knows our user but denies access is not reported as unreachable', () => {
  const error = new kafkajs.KafkaJSProtocolError({
    type: 'TOPIC_AUTHORIZATION_FAILED',
    code: 29,
    message: 'Not authorized to access topics',
  } as never)
  assert.match(lineOf(error) ?? '', /does not allow it \(Not authorized to access topics\): grant payoutd/)
})

/** A port that fetch does not block. */
async function unusedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('a topic that an open transaction hides gives a fault that says what to do, so that doctor calls it no bug', () => {
  const error = new OpenTransaction('payout.commands.dlq', [{ partition: 2, from: 7n, waiting: 3n }])
  assert.equal(lineOf(error), error.message)
  assert.match(
    error.message,
    /payout\.commands\.dlq, partition 2 from offset 7 on \(3 waiting\), so payoutd cannot read/,
  )
})

test('a registry that cannot be reached is named without its password', async () => {
  const registry = connectRegistry({ url: `http://127.0.0.1:${await unusedPort()}` })
  const schema = { type: 'record' as const, namespace: 'test', name: 'Thing', fields: [] }
  const text = JSON.stringify(schema)
  const error = await registry
    .register({ topic: 'things', schema, text, compatibility: 'FULL_TRANSITIVE' })
    .catch((failure: unknown) => failure)
  assert.equal(
    lineOf(error),
    'the schema registry at http://registry.example.in:8081/apis/ccompat/v7 does not answer (ECONNREFUSED): start it, or correct SCHEMA_REGISTRY_URL',
  )
})

test('a bug of ours is not reported as a fault of a dependency', async () => {
  assert.equal(dependencyFaultOf(new TypeError('x is not a function'), AT), null)
  const syntaxError = await errorOf(() => undefined, sql<object>`selec 1`)
  assert.equal(dependencyFaultOf(syntaxError, AT), null)
})
