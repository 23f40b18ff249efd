import path from 'node:path'
import { hasClassArchives } from '../devkit/local/servers/java.ts'
import type { Given } from '../devkit/local/servers/servers.ts'
import { type Stack, startStack } from '../devkit/local/servers/stack.ts'
import { createLogger } from '../src/platform/log.ts'
import { withSession } from '../src/platform/postgres/postgres.ts'
import { dropEmptied } from './emptied-databases.ts'

const { env } = process
// Every test file is a process: later ones reuse what one has stripped of types and compiled.
env.NODE_COMPILE_CACHE ??= path.resolve(import.meta.dirname, '..', '.payoutd', 'compile-cache')
let stop = async (): Promise<void> => undefined

/**
 * One Postgres, Kafka and schema registry for all test files of a run, which find them in TEST_DATABASE_URL,
 * TEST_KAFKA_BROKERS and TEST_SCHEMA_REGISTRY_URL: the test processes inherit the variables set here. An address
 * that is already set is used as it is. TEST_STACK=testcontainers runs the servers in Docker.
 */
export async function globalSetup(): Promise<void> {
  const given = {
    databaseUrl: env.TEST_DATABASE_URL,
    kafkaBrokers: env.TEST_KAFKA_BROKERS?.split(','),
    schemaRegistryUrl: env.TEST_SCHEMA_REGISTRY_URL,
  }
  if (given.databaseUrl) stop = () => dropEmptied(given.databaseUrl as string)
  if (given.databaseUrl && given.kafkaBrokers && given.schemaRegistryUrl) return
  const stack = (env.TEST_STACK === 'testcontainers' && (await startContainers())) || (await startHere(given))
  stop = stack.stop
  await makeFast(stack.databaseUrl)
  env.TEST_DATABASE_URL ??= stack.databaseUrl
  env.TEST_KAFKA_BROKERS ??= stack.kafkaBrokers.join(',')
  env.TEST_SCHEMA_REGISTRY_URL ??= stack.schemaRegistryUrl
}

async function startHere(given: Given): Promise<Stack> {
  const options = {
    dir: path.resolve(import.meta.dirname, '..', '.payoutd', 'test'),
    given,
    sandbox: false,
    ports: 'any',
    log: createLogger({ level: 'error', name: 'test-stack', destination: 2 }),
  } as const
  const isFirst = !hasClassArchives()
  const stack = await startStack({ ...options, fresh: true })
  if (!isFirst || Object.values(given).some(Boolean)) return stack
  // A JVM saves its classes when it stops. Without them, tests that start stacks take twice the CPU time.
  await stack.stop()
  return startStack(options)
}

/**
 * Commits need not survive a power cut. Each test creates and drops a database, and each drop waits until all that
 * other tests wrote is on the disk.
 */
async function makeFast(databaseUrl: string): Promise<void> {
  await withSession(databaseUrl, async (session) => {
    for (const setting of ['fsync', 'full_page_writes'])
      await session.query(`alter system set ${setting} = off`)
    await session.query('select pg_reload_conf()')
  })
}

/** Loaded only on request: testcontainers takes a second to load. */
async function startContainers() {
  return (await import('./containers.ts')).startContainers()
}

export async function globalTeardown(): Promise<void> {
  await stop()
}
