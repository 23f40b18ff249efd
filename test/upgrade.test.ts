import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSandbox } from '../devkit/sandbox/sandbox.ts'
import { readConfig } from '../src/config/config.ts'
import { command } from '../src/domain/commands/command.fixture.ts'
import { payoutKey } from '../src/domain/identifiers.ts'
import { paise } from '../src/domain/money.ts'
import { migrateAll } from '../src/ledger/tables/migrate-all.ts'
import { schemaSubjects, topicNames } from '../src/messages/topics.ts'
import { createPublisher } from '../src/platform/kafka/producer.ts'
import { silentLogger } from '../src/platform/log.ts'
import { sql } from '../src/platform/postgres/postgres.ts'
import { openCodec } from '../src/platform/registry/codec.ts'
import { connectRegistry } from '../src/platform/registry/registry.ts'
import { eventually } from '../src/platform/running/eventually.fixture.ts'
import { freshDatabase } from './database.ts'
import { testEnvironment } from './ledger.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const PAYOUTS = 40

const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()

/** The release before this one; PREVIOUS_RELEASE names any other commit. Empty: there is no release yet. */
function previousRelease(): string {
  try {
    return (
      process.env.PREVIOUS_RELEASE ?? git('tag', '--list', 'v*', '--sort=-v:refname').split('\n')[0] ?? ''
    )
  } catch {
    // An archive of the sources has no release history.
    return ''
  }
}

const packagesOf = (root: string): Record<string, { version: string } | undefined> =>
  JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages

/** The code of a commit in its own folder, with its packages: ours if they are the same. */
function checkOut(t: TestContext, ref: string): string {
  const folder = path.join(mkdtempSync(path.join(tmpdir(), 'upgrade-')), 'payoutd')
  git('worktree', 'add', '--quiet', '--detach', folder, ref)
  t.after(() => {
    git('worktree', 'remove', '--force', folder)
    rmSync(path.dirname(folder), { recursive: true })
  })
  const [theirs, ours] = [packagesOf(folder), packagesOf(ROOT)]
  if (Object.keys(theirs).every((name) => name === '' || theirs[name]?.version === ours[name]?.version)) {
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  } else execFileSync('npm', ['ci', '--ignore-scripts', '--silent'], { cwd: folder })
  return folder
}

function serve(
  t: TestContext,
  root: string,
  env: NodeJS.ProcessEnv,
): { child: ChildProcess; log: () => string } {
  const program = path.join(root, 'bin', 'payoutd.ts')
  const child = spawn(process.execPath, [program, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text
    })
  }
  t.after(() => child.kill('SIGKILL'))
  return { child, log: () => log }
}

const states = sql<object, { state: string; count: number }>`
  select state, count(*)::int as count from payouts group by state order by state`
const claimers = sql<object, { owners: number }>`select count(distinct owner)::int as owners from attempts`

const ref = previousRelease()

test('the previous release pays on the tables of this one, beside it', {
  skip: ref === '' ? 'nothing was released yet; PREVIOUS_RELEASE=<commit> tries any other' : false,
  timeout: 170_000,
}, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'upgrade-sandbox-'))
  const key = randomBytes(12).toString('hex')
  const sandbox = await startSandbox({
    state: path.join(folder, 'state.sqlite'),
    merchants: [{ mchId: '1000100', key }],
  })
  t.after(async () => {
    await sandbox.stop()
    rmSync(folder, { recursive: true })
  })
  const prefix = `u${randomBytes(4).toString('hex')}.`
  const database = await freshDatabase(t, { migrated: false })
  const env = {
    ...testEnvironment(database, { GATEWAY_BASE_URL: sandbox.url, GATEWAY_KEY: key }),
    ...{ TOPIC_PREFIX: prefix, KAFKA_GROUP: prefix, LOG_LEVEL: 'info', PATH: process.env.PATH },
  }
  const config = readConfig(env)
  await migrateAll(config, silentLogger)

  const processes = [serve(t, checkOut(t, ref), env), serve(t, ROOT, env)]
  const story = async () =>
    [JSON.stringify(await database.db.run(states, {})), ...processes.map(({ log }) => log())].join('\n')
  await eventually('both to be up', async () =>
    processes.every(({ log }) => log().includes('payoutd is up')),
  ).catch(async (error: unknown) => {
    throw new Error(await story(), { cause: error })
  })

  const topics = topicNames(prefix)
  const codec = await openCodec(connectRegistry(config.registry), schemaSubjects(topics))
  const encode = codec.encoder(topics.commands, 'in.payoutd.PayoutRequested')
  const publisher = createPublisher('test', config.kafka, silentLogger)
  t.after(() => publisher.close())
  const requests = Array.from({ length: PAYOUTS }, (_, i) =>
    command(`p${i}`, { amount: paise(100 * (i + 100)) }),
  )
  await publisher.publish(
    requests.map((request) => ({
      topic: topics.commands,
      key: payoutKey(request),
      value: encode(request),
    })),
  )
  const paid = [{ state: 'paid', count: PAYOUTS }]
  await eventually(
    'all to be paid',
    async () => JSON.stringify(await database.db.run(states, {})) === JSON.stringify(paid),
  ).catch(async (error: unknown) => {
    throw new Error(await story(), { cause: error })
  })
  for (const { child } of processes) assert.equal(child.exitCode, null)
  const [claimed] = await database.db.run(claimers, {})
  t.diagnostic(`${PAYOUTS} paid beside ${ref}, claimed by ${claimed?.owners} processes`)
})
