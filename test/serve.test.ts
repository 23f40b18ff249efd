import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { payoutd, payoutdAlone } from '../src/cli/cli.fixture.ts'
import { readConfig } from '../src/config/config.ts'
import { checkTopics } from '../src/doctor/kafka/topics.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../src/messages/topics.ts'
import { proveKeys } from '../src/operators/key-proofs.ts'
import { connectAdmin } from '../src/platform/kafka/admin.ts'
import { makeTopic } from '../src/platform/kafka/kafka.fixture.ts'
import { silentLogger } from '../src/platform/log.ts'
import { connectRegistry, type SchemaSubject } from '../src/platform/registry/registry.ts'
import { silentWire } from '../src/platform/wire.fixture.ts'
import { freshDatabase } from './database.ts'
import { registered, testEnvironment } from './ledger.ts'

test('serve --help names the roles, and says that the default is all of them', async () => {
  const { stdout } = await payoutd(['serve', '--help'], {})
  assert.match(stdout, /--roles <list> [^(]*\(default:\s+all\)/)
})

test('serve refuses to start with another key than the one in use, and says what to do', async (t) => {
  const database = await freshDatabase(t)
  const env = testEnvironment(database)
  const config = readConfig(env)
  const { sealing, fingerprintKey } = config
  await registered(config)
  await proveKeys(database.db, { sealing, fingerprint: fingerprintKey })
  const { code, stderr } = await payoutd(['serve', '--roles', 'dispatch'], {
    ...env,
    ENCRYPTION_KEYS: `1:${randomBytes(32).toString('base64')}`,
  })
  assert.equal(code, 1)
  assert.equal(
    stderr,
    'key 1 in ENCRYPTION_KEYS does not decrypt what was encrypted with key 1: ' +
      'put the former key back as 1, and give a new key a higher id\n',
  )
})

test('without its topics or its schemas serve does not start, names them, and creates none', async (t) => {
  const prefix = `s${randomBytes(4).toString('hex')}.`
  const env = testEnvironment(await freshDatabase(t), { TOPIC_PREFIX: prefix })
  const config = readConfig(env)
  const topics = topicNames(prefix)
  const admin = await connectAdmin(config.kafka, silentLogger)
  t.after(() => admin.close())

  await makeTopic(topics.commands)
  const bare = await payoutd(['serve'], env)
  assert.equal(bare.code, 1)
  assert.match(
    bare.stderr,
    new RegExp(`^topics are missing on Kafka at \\S+: ${topics.events}, .*: run payoutd migrate, .*\n$`),
  )
  assert.doesNotMatch(bare.stderr, new RegExp(`${topics.commands},`))
  assert.equal((await admin.describeTopics(Object.values(topics))).length, 1)

  await admin.createTopics(topicSpecs(topics, { partitions: 1, replication: 1 }))
  for (const command of [['serve'], ['recover', '--yes', '--by', 'asha', '--reason', 'restored']]) {
    const { code, stderr } = await payoutd(command, env)
    assert.equal(code, 1)
    assert.match(
      stderr,
      new RegExp(
        `the schema registry lacks this version's schema of ${topics.commands}-in.payoutd.Pay.*migrate`,
      ),
    )
  }
  const [first] = schemaSubjects(topics)
  assert.equal(await connectRegistry(config.registry).lookUp(first as SchemaSubject), null)
})

test('serve reads no commands from a topic that Kafka compacts: nobody would notice what it drops', async (t) => {
  const prefix = `c${randomBytes(4).toString('hex')}.`
  const env = testEnvironment(await freshDatabase(t), { TOPIC_PREFIX: prefix })
  const { kafka } = readConfig(env)
  const topics = topicNames(prefix)
  const admin = await connectAdmin(kafka, silentLogger)
  t.after(() => admin.close())
  const specs = topicSpecs(topics, { partitions: 1, replication: 1 })
  await admin.createTopics(
    specs.map((spec) =>
      spec.name === topics.commands
        ? { ...spec, configs: { ...spec.configs, 'cleanup.policy': 'compact,delete' } }
        : spec,
    ),
  )
  const { code, stderr } = await payoutd(['serve'], env)
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`^Kafka compacts ${topics.commands}: .* cleanup.policy to delete`))
})

test("topics have the settings that migrate gives them, whatever Kafka's own defaults are", async (t) => {
  const env = testEnvironment(await freshDatabase(t))
  const admin = await connectAdmin(readConfig(env).kafka, silentLogger)
  t.after(() => admin.close())
  const specs = topicSpecs(topicNames(`m${randomBytes(4).toString('hex')}.`), {
    partitions: 1,
    replication: 1,
  })
  await admin.createTopics(specs)
  assert.equal(checkTopics(specs, await admin.describeTopics(specs.map(({ name }) => name))).state, 'good')
})

/** Makes fifty seconds pass in one, by the clock that heartbeats use. */
const HURRIED = encodeURIComponent(
  'const now = performance.now.bind(performance); performance.now = () => 50 * now()',
)

test('a process whose loop stands still names the loop and ends with 70', { timeout: 60_000 }, async (t) => {
  const database = await freshDatabase(t)
  const direct = testEnvironment(database)
  await registered(readConfig(direct))
  const { hostname, port } = new URL(database.url)
  const wire = await silentWire({ host: hostname, port: Number(port) })
  t.after(() => wire.close())
  const through = new URL(database.url)
  through.port = String(wire.port)
  const env = {
    ...direct,
    DATABASE_URL: through.href,
    LOG_LEVEL: 'info',
    NODE_OPTIONS: `--import=data:text/javascript,${HURRIED}`,
  }
  const { code, stdout } = await payoutdAlone(['serve', '--roles', 'outcomes'], env, '', (child) => {
    t.after(() => child.kill('SIGKILL'))
    let printed = ''
    child.stdout?.on('data', (text: string) => {
      printed += text
      if (printed.includes('payoutd is up')) wire.silence()
    })
  })
  assert.equal(code, 70, stdout)
  const last = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
  // Each of these asks the database.
  assert.match(
    last.loop,
    /^(payin )?poller$|^(kept|lost) (payin )?callbacks$|^callback lag$|^accounts that are back$|^dependencies$|^housekeeping$|^open accounts$/,
  )
  assert.ok(last.ms > 120_000)
  assert.match(last.msg, /^a loop has stopped moving, so this process exits/)
})
