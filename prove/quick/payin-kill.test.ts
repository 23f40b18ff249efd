import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { startInstallation } from '../../devkit/local/demo/installation.ts'
import { internalUrl } from '../../devkit/local/demo/payoutd-process.ts'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { readConfig } from '../../src/config/config.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { payinIdFor } from '../../src/payins/identifiers.ts'
import { createHttpServer, listen } from '../../src/platform/http.ts'
import { readTopics } from '../../src/platform/kafka/reader.ts'
import { readHeader } from '../../src/platform/kafka/records.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from '../../test/database.ts'
import { testEnvironment } from '../../test/ledger.ts'
import { brokenPayins, outboxOf, storedPayins } from '../../test/payins.ts'

const PAYINS = 60
const AT_ONCE = 8
/** The numbers of payins in its books at which payoutd is killed; the last of them have no answer yet. */
const KILLED_AFTER = [5, 25, 45]
/** The payer's act, by the payin's number. */
const DEEDS = ['pay', 'pay', 'fail', null]
const MCH_ID = '1000100'
const KEY = 'a-key-of-the-kill-test'

/** By the sandbox's status; an unknown order has no line. */
const STATES: Record<number, string> = { 0: 'open', 2: 'paid', 3: 'failed' }
type Line = { mchOrderNo: string; payOrderId: string; amount: string; status: number }

const answers = sql<object, { count: number }>`
  select count(*)::int as count from history where source = 'CREATE'`

/** A sandbox behind a server that counts the creations of each order on their way. */
async function startGateway(ends: AsyncDisposableStack, folder: string) {
  const sandbox = await startSandbox({
    state: path.join(folder, 'sandbox'),
    merchants: [{ mchId: MCH_ID, key: KEY }],
    latencyMs: 150,
    callbackRetries: [1, 1, 1, 2, 2, 5],
  })
  ends.defer(() => sandbox.stop())
  const creations = new Map<string, number>()
  const server = createHttpServer()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  server.post<{ Body: string }>('/*', async ({ url, headers, body }, reply) => {
    if (url === '/api/pay/neworder') {
      const orderNo = new URLSearchParams(body).get('mchOrderNo') ?? ''
      creations.set(orderNo, (creations.get(orderNo) ?? 0) + 1)
    }
    const type = headers['content-type'] ?? ''
    const answer = await fetch(sandbox.url + url, { method: 'POST', headers: { 'content-type': type }, body })
    return reply
      .code(answer.status)
      .type('application/json')
      .send(await answer.text())
  })
  const url = await listen(server, { host: '127.0.0.1', port: 0 })
  ends.defer(() => server.close())

  const lines = async () => {
    const told = await (await fetch(`${sandbox.url}/_sandbox/payins?mchId=${MCH_ID}`)).text()
    return told
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
  }
  return {
    url,
    creations,
    states: async () => new Map((await lines()).map((line) => [line.mchOrderNo, STATES[line.status]])),
    /** Every payer who has an order acts on it. */
    async pay(): Promise<void> {
      for (const { payOrderId, amount, status } of await lines()) {
        const act = DEEDS[(Number(amount) / 100) % DEEDS.length]
        if (act && status === 0)
          await fetch(`${sandbox.url}/checkout/${payOrderId}/${act}`, { method: 'POST' })
      }
    },
  }
}

/** payoutd as a process with all its roles, which queries and gives up sooner than in production. */
async function startPayoutd(ends: AsyncDisposableStack, folder: string, gatewayUrl: string) {
  const database = await freshDatabase({ after: (drop) => ends.defer(drop) })
  const dialect = path.join(folder, 'dialect.json')
  const quicker = { queryAfterMs: [500], absence: { graceMs: 500 } }
  const base = path.join(import.meta.dirname, '../../test/quick-dialect.json')
  await writeFile(dialect, JSON.stringify({ extends: base, ...quicker }))
  const { TOPIC_PREFIX, TOPIC_PARTITIONS, KAFKA_GROUP, PUBLIC_PORT, INTERNAL_PORT, ...given } =
    testEnvironment(database, {
      GATEWAY_BASE_URL: gatewayUrl,
      GATEWAY_KEY: KEY,
      GATEWAY_DIALECT: dialect,
    }) as Record<string, string>
  const installation = await startInstallation({
    dir: path.join(folder, 'installation'),
    fresh: true,
    ports: 'any',
    given,
    settings: { TOPIC_PREFIX, TOPIC_PARTITIONS, KAFKA_GROUP, LOG_LEVEL: 'warn' } as Record<string, string>,
    log: silentLogger,
    onStep: () => undefined,
  })
  ends.defer(async () => {
    // This test is not about an orderly stop.
    await installation.payoutd.kill()
    await installation.stop()
  })
  return { installation, db: database.db }
}

test('payoutd is killed repeatedly: each payin is created once, ends as at the gateway, and is published', async (t) => {
  // Ends in reverse order of starting.
  const ends = new AsyncDisposableStack()
  t.after(() => ends.disposeAsync())
  const folder = await mkdtemp(path.join(tmpdir(), 'payoutd-'))
  ends.defer(() => rm(folder, { recursive: true }))
  const gateway = await startGateway(ends, folder)
  const { installation, db } = await startPayoutd(ends, folder, gateway.url)
  const { payoutd, settings } = installation

  const numbers = Array.from({ length: PAYINS }, (_, number) => number)
  const ids = numbers.map((number) => payinIdFor('acme', `order-${number}`)).sort()
  const ask = (number: number) =>
    eventually(`an answer about payin ${number}`, () =>
      fetch(`${internalUrl(settings)}/v1/payins`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `order-${number}` },
        body: JSON.stringify({ amount: 50_000 + 100 * number }),
      }).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
  const waiting = [...numbers]
  const asking = Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await ask(next)
    }),
  )
  for (const count of KILLED_AFTER) {
    await eventually(`${count} payins`, async () => (await db.run(storedPayins, {})).length >= count)
    await payoutd.kill()
    await gateway.pay()
    await payoutd.start()
  }
  await asking
  await gateway.pay()

  const config = readConfig(settings)
  const topics = topicNames(config.topicPrefix)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const told = new Map<string, Set<string>>()
  const reading = readTopics({
    connection: config.kafka,
    topics: [topics.payinResults],
    onRecord: async ({ value, headers }) => {
      const decoded = await codec.decode(value)
      assert.ok('value' in decoded)
      const { payinId, status } = decoded.value as { payinId: string; status: string }
      const end = `${status.toLowerCase()} ${readHeader(headers, 'ce_id')}`
      told.set(payinId, (told.get(payinId) ?? new Set()).add(end))
    },
    log: silentLogger,
  })
  ends.defer(() => reading.stop())

  const known = async () =>
    new Map((await db.run(storedPayins, {})).map(({ payinId, state }) => [payinId, state]))
  const inTheBooks = async () => {
    const states = await gateway.states()
    return new Map(ids.map((id) => [id, states.get(id) ?? 'failed']))
  }
  await eventually('every payin to be what the books of the gateway say', async () =>
    isDeepStrictEqual(await known(), await inTheBooks()),
  )
  const states = await inTheBooks()
  const ended = ids.filter((id) => states.get(id) !== 'open')
  await eventually('every result to be published and read', async () => {
    const left = await db.run(outboxOf, { topic: topics.payinResults })
    return left.length === 0 && ended.every((id) => told.has(id))
  })
  assert.deepEqual(
    ids.map((id) => [...(told.get(id) ?? [])].map((end) => end.split(' ')[0])),
    ids.map((id) => (states.get(id) === 'open' ? [] : [states.get(id)])),
  )
  assert.deepEqual(new Set(gateway.creations.values()), new Set([1]))
  const [answered] = await db.run(answers, {})
  assert.ok((answered?.count ?? PAYINS) <= PAYINS - KILLED_AFTER.length, 'no kill fell into a creation')
  assert.deepEqual(await db.run(brokenPayins, {}), [])
})
