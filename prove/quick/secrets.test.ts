import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { anyFreePort } from '../../devkit/local/servers/processes/ports.ts'
import { startSandbox } from '../../devkit/sandbox/sandbox.ts'
import { readConfig } from '../../src/config/config.ts'
import { command } from '../../src/domain/commands/command.fixture.ts'
import { paise } from '../../src/domain/money.ts'
import { createGatewayClient } from '../../src/gateway/client.ts'
import { signature } from '../../src/gateway/wire/sign.ts'
import { migrateAll } from '../../src/ledger/tables/migrate-all.ts'
import { schemaSubjects, topicNames } from '../../src/messages/topics.ts'
import { createPublisher } from '../../src/platform/kafka/producer.ts'
import { readTopics } from '../../src/platform/kafka/reader.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { openCodec } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import { callbackPath } from '../../src/stages/outcomes/callback-endpoint.ts'
import { freshDatabase } from '../../test/database.ts'
import { testEnvironment } from '../../test/ledger.ts'
import { outboxMessages } from '../../test/outbox-messages.ts'

const program = path.resolve(import.meta.dirname, '../../bin/payoutd.ts')

type Beneficiary = {
  accountNo: string
  accountName: string
  phoneNumber: string
  payerEmail: string
  vpa: string | null
}

/** Nobody else has these details. The first account numbers make the sandbox misbehave in each of its ways. */
const beneficiary = (i: number, accountNo: string): Beneficiary => ({
  accountNo,
  accountName: `Zebulon Quagmire ${String.fromCharCode(65 + i)}`,
  phoneNumber: `98${String(71_000_000 + i * 7919)}`,
  payerEmail: `zebulon.quagmire.${i}@paid.example`,
  vpa: i % 4 === 0 ? `zebulon.quagmire.${i}@okaxis` : null,
})

const MAGIC = ['01', '02', '03', '04', '05', '06', '07', '08', '09', '12', '13', '14', '15']
const people = [
  ...MAGIC.map((code, i) => beneficiary(i, `99990000${code}77${String(1000 + i)}`)),
  ...Array.from({ length: 7 }, (_, i) => beneficiary(i + MAGIC.length, `60200045${String(67_890 + i)}`)),
]

const waiting = sql<object, { count: bigint }>`
  select count(*) as count from payouts where state in ('held', 'queued', 'submitting', 'unknown', 'processing')`
const sentOut = sql<object, { count: bigint }>`select count(*) as count from ${outboxMessages}`
const textOf = (table: string) =>
  sql<
    object,
    { text: string }
  >`select coalesce(string_agg(t::text, E'\n'), '') as text from ${{ fragment: table }} t`
const sealedText = sql<object, { text: string }>`
  select coalesce(string_agg(encode(sealed, 'escape'), E'\n'), '') as text from payout_commands`

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; !(await holds()); i++) {
    assert.ok(i < 1_200, `waited a minute for ${what}`)
    await delay(50)
  }
}

async function run(env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [program, ...args], { env: { ...process.env, ...env } })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  return out + err
}

/** payoutd as a process; stopping it returns what it printed. */
async function serve(
  t: TestContext,
  env: NodeJS.ProcessEnv,
  internalUrl: string,
): Promise<() => Promise<string>> {
  const child = spawn(process.execPath, [program, 'serve'], { env: { ...process.env, ...env } })
  const printed = Promise.all([text(child.stdout), text(child.stderr)])
  t.after(() => child.kill('SIGKILL'))
  await until('payoutd to be ready', () =>
    fetch(`${internalUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return async () => {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
    return (await printed).join('\n')
  }
}

test('a run leaves no account number, name, phone, e-mail or key behind in clear text', async (t) => {
  const key = randomBytes(12).toString('hex')
  const sandbox = await startSandbox({
    state: path.join(mkdtempSync(path.join(tmpdir(), 'payoutd-')), 'sandbox.sqlite'),
    merchants: [{ mchId: '1000100', key }],
    settleMs: 20,
    callbackRetries: [1],
  })
  t.after(() => sandbox.stop())
  const database = await freshDatabase(t)
  const publicPort = await anyFreePort()
  const internalPort = await anyFreePort()
  const env = testEnvironment(database, {
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_KEY: key,
    GATEWAY_DIALECT: path.join(import.meta.dirname, '../../test/quick-dialect.json'),
    PUBLIC_PORT: String(publicPort),
    INTERNAL_PORT: String(internalPort),
    LOG_LEVEL: 'debug',
  })
  const config = readConfig(env)
  await migrateAll(config, silentLogger)
  const topics = topicNames(config.topicPrefix)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const encode = codec.encoder<object>(topics.commands, 'in.payoutd.PayoutRequested')
  const heard: string[] = []
  const reading = readTopics({
    connection: config.kafka,
    topics: [topics.events, topics.results, topics.anomalies, topics.payinResults, topics.deadLetters],
    onRecord: ({ key, value, headers }) => {
      heard.push(
        `${key} ${value?.toString('latin1')} ${value?.toString()} ${JSON.stringify(headers)} ${Object.values(headers)}`,
      )
    },
    log: silentLogger,
  })
  t.after(() => reading.stop())
  const internalUrl = `http://127.0.0.1:${internalPort}`
  const stop = await serve(t, env, internalUrl)

  const good = people.map((person, i) =>
    encode(command(`p${i}`, { ...person, ifsc: person.vpa ? null : 'HDFC0001234', amount: paise(10_000n) })),
  )
  const broken = people.slice(0, 5).map((person, i) =>
    encode(
      command(`wrong${i}`, {
        ...person,
        accountNo: `${person.accountNo}-`,
        phoneNumber: `+${person.phoneNumber}`,
        accountName: `${person.accountName}&x`,
      }),
    ),
  )
  const contradicting = encode(command('p1', { ...(people[1] as Beneficiary), amount: paise(20_000n) }))
  const garbage = people.map((person) => Buffer.from(JSON.stringify(person)))
  const stranger = encode(command('p1', { ...(people[2] as Beneficiary), merchantId: 'nobody' }))
  const publisher = createPublisher('test', config.kafka, silentLogger)
  await publisher.publish(
    [...good, ...broken, contradicting, ...garbage, stranger].map((value) => ({
      topic: topics.commands,
      key: 'k',
      value,
    })),
  )
  await publisher.close()

  const [talkative] = people as [Beneficiary]
  const asked = await fetch(`${internalUrl}/v1/payins`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'order-1' },
    body: JSON.stringify({
      amount: 50_000,
      accountName: talkative.accountName,
      phoneNumber: talkative.phoneNumber,
      payerEmail: talkative.payerEmail,
    }),
  })
  assert.equal(asked.status, 201)
  const askedText = await asked.text()
  const { payinId, payOrderId } = JSON.parse(askedText) as { payinId: string; payOrderId: string }

  // A gateway that repeats bank details where it should not, well signed, and one that cannot sign.
  const merchant = config.merchants.get('acme')
  assert.ok(merchant)
  const say = (path: string, given: Record<string, string>, wrongSign?: string): Promise<Response> => {
    const { accountNo, payerEmail, phoneNumber } = talkative
    const errorMessage = `A/c ${accountNo} of ${payerEmail}, ${phoneNumber}, is closed`
    const fields = { ...given, status: '3', errorMessage }
    const sign =
      wrongSign ?? signature(new Map(Object.entries(fields)), key, merchant.dialect.sign, 'callbacks')
    const query = new URLSearchParams({ ...fields, sign })
    return fetch(`http://127.0.0.1:${publicPort}${path}?${query}`, { method: 'POST' })
  }
  const payout = { mchOrderNo: 'PNOBODYKNOWS', amount: '10000' }
  await until(
    'the first anomaly to be answered',
    async () => (await say(callbackPath('payout', 'acme'), payout)).status === 200,
  )
  const refused = await say(callbackPath('payout', 'acme'), payout, 'wrong')
  assert.equal(refused.status, 401)
  const failedPayin = { mchId: '1000100', mchOrderNo: payinId, payOrderId, amount: '50000' }
  for (const payin of [failedPayin, { ...failedPayin, mchOrderNo: 'CNOBODYKNOWS' }]) {
    assert.equal((await say(callbackPath('payin', 'acme'), payin)).status, 200)
  }

  const count = async (statement: typeof waiting) => (await database.db.run(statement, {}))[0]?.count
  await until(
    'every command to be read',
    async () => ((await database.db.run(textOf('payouts'), {}))[0]?.text.match(/wrong4/) ?? null) !== null,
  )
  await until('every payout to end', async () => (await count(waiting)) === 0n)
  await until(
    'everything to be published',
    async () =>
      (await count(sentOut)) === 0n &&
      heard.length > people.length * 3 &&
      heard.some((message) => message.includes(`acme:${payinId}`)),
  )

  const places: Record<string, string> = {
    'answer of the callback endpoint': await refused.text(),
    metrics: await (await fetch(`${internalUrl}/metrics`)).text(),
    readiness: await (await fetch(`${internalUrl}/readyz`)).text(),
    'payout show': await run(env, 'payout', 'show', 'p1'),
    'payout show as JSON': await run(env, 'payout', 'show', 'p4', '--json'),
    'payin as it was created': askedText,
    'payin as it is told': await (await fetch(`${internalUrl}/v1/payins/${payinId}`)).text(),
    'payin show': await run(env, 'payin', 'show', payinId),
    merchants: await run(env, 'merchants'),
    doctor: await run(env, 'doctor'),
    'a wrong setting': await run({ ...env, ENCRYPTION_KEYS: `1:${key}`, GATEWAY_DIALECT: 'none' }, 'serve'),
    messages: heard.join('\n'),
    'sealed details': (await database.db.run(sealedText, {}))[0]?.text ?? '',
  }
  for (const table of [
    'payouts',
    'payins',
    'payout_commands',
    'attempts',
    'history',
    'anomalies',
    'batches',
    'merchants',
  ]) {
    places[`table ${table}`] = (await database.db.run(textOf(table), {}))[0]?.text ?? ''
  }
  places.log = await stop()

  // Finding nothing proves something only if there was something to search.
  for (const [place, found] of Object.entries(places)) {
    if (place !== 'table batches') assert.ok(found.length > 10, `${place} is empty`)
  }
  assert.match(places.log, /payoutd is up/)
  assert.match(places['table anomalies'] ?? '', /amount-mismatch/)
  assert.match(places['payout show'] ?? '', /p1/)
  for (const place of ['table payins', 'payin as it is told', 'payin show', 'messages']) {
    assert.match(places[place] ?? '', /is closed/, place)
  }

  const secrets = [
    ...people.flatMap(({ accountNo, accountName, phoneNumber, payerEmail, vpa }) => [
      accountNo,
      accountName,
      phoneNumber,
      payerEmail,
      ...(vpa ? [vpa] : []),
    ]),
    key,
    (env.ENCRYPTION_KEYS as string).slice(2),
    env.FINGERPRINT_KEY as string,
    new URL(database.url).password,
  ].filter((secret) => secret !== '')
  for (const [place, found] of Object.entries(places)) {
    for (const secret of secrets) assert.ok(!found.includes(secret), `${place} shows ${secret}`)
  }
})

test('a client of the gateway does not show its key, however it is printed', async () => {
  const key = randomBytes(12).toString('hex')
  const { merchants } = readConfig(
    testEnvironment({ url: 'postgres://u:p@127.0.0.1/x', db: undefined as never }),
  )
  const dialect = merchants.get('acme')?.dialect
  assert.ok(dialect)
  const client = createGatewayClient({
    baseUrl: 'http://127.0.0.1:9',
    mchId: '1',
    key,
    dialect,
    connections: 1,
    clock: { now: () => 0, monotonic: () => 0 },
  })
  const { inspect } = await import('node:util')
  const printed = [
    inspect(client, { depth: 10, showHidden: true }),
    String(client),
    JSON.stringify(client),
  ].join('\n')
  assert.ok(!printed.includes(key))
  await client.close()
})
