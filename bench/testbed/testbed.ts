import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { sandboxMain } from '../../devkit/local/servers/layout.ts'
import type { ServerProcess } from '../../devkit/local/servers/processes/process.ts'
import { end } from '../../devkit/local/servers/server.ts'
import type { Stack } from '../../devkit/local/servers/stack.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import { schemaSubjects, topicNames, topicSpecs } from '../../src/messages/topics.ts'
import { connectAdmin } from '../../src/platform/kafka/admin.ts'
import type { Logger } from '../../src/platform/log.ts'
import { registerSchemas } from '../../src/platform/registry/codec.ts'
import { connectRegistry } from '../../src/platform/registry/registry.ts'
import type { BenchServers } from './servers.ts'
import { type BenchSettings, GATEWAY, MERCHANT_ID, mchIdOf, SETTLE_MS } from './settings.ts'
import { type Spawn, spawnNode } from './spawn.ts'

/** What one run has to itself: a database, topics and a gateway with empty books. */
export interface Testbed {
  /** A worker's environment, and the configuration that it describes. */
  env: Record<string, string>
  config: Config
  sandbox: ServerProcess
  /** The gateway's books; read them once it has stopped. */
  stateFile: string
  /** Starts a worker on it. */
  spawn: Spawn
  /** Stops the gateway and drops the database. */
  close(): Promise<void>
}

export async function openTestbed(
  name: string,
  servers: BenchServers,
  settings: Pick<BenchSettings, 'inFlight' | 'latencyMs'> & { merchants?: number },
): Promise<Testbed> {
  const { stack, host, logs, log } = servers
  const sandbox = await startSandbox(name, servers, { ...settings, balance: RICH })
  await administer(stack, 'checkpoint')
  await administer(stack, `create database "${name}"`)
  const env = environment(name, stack, sandbox.url, settings)
  const config = readConfig(env)
  await createTopics(config, log)
  await registerSchemas(connectRegistry(config.registry), schemaSubjects(topicNames(config.topicPrefix)))
  let spawned = 0
  return {
    env,
    config,
    sandbox: sandbox.process,
    stateFile: sandbox.stateFile,
    spawn: async (args, more) => {
      const logFile = path.join(logs, `${name}-${++spawned}.log`)
      const started = await spawnNode(args, { env: { ...env, ...more }, logFile, ready: ' is up"', host })
      return { process: started.process, said: JSON.parse(started.line) }
    },
    async close() {
      await end(sandbox.process, 'SIGTERM')
      await administer(stack, `drop database "${name}" with (force)`)
    },
  }
}

/** In paise. */
const RICH = '900000000000000'

/** A gateway with books of its own, where each merchant has so many paise. */
export async function startSandbox(
  name: string,
  { data, logs, host }: BenchServers,
  {
    latencyMs,
    balance,
    merchants = 1,
  }: Pick<BenchSettings, 'latencyMs'> & { balance: string; merchants?: number },
): Promise<{ process: ServerProcess; url: string; stateFile: string }> {
  await mkdir(data, { recursive: true })
  const stateFile = path.join(data, `${name}.sqlite`)
  const logFile = path.join(logs, `${name}-sandbox.log`)
  const args = [sandboxMain, '--port', '0', '--state', stateFile]
  for (let i = 0; i < merchants; i++) args.push('--merchant', `${mchIdOf(i)}:${GATEWAY.key}`)
  args.push('--balance', balance)
  args.push('--latency-ms', String(latencyMs), '--settle-ms', String(SETTLE_MS))
  const started = await spawnNode(args, { logFile, ready: 'sandbox ready at', host })
  const [, url = ''] = /ready at ([^,]+),/.exec(started.line) ?? []
  return { process: started.process, url, stateFile }
}

function environment(
  name: string,
  stack: Stack,
  gatewayUrl: string,
  { inFlight }: Pick<BenchSettings, 'inFlight'>,
) {
  const database = new URL(stack.databaseUrl)
  database.pathname = `/${name}`
  return {
    DATABASE_URL: database.href,
    KAFKA_BROKERS: stack.kafkaBrokers.join(','),
    KAFKA_GROUP: name,
    TOPIC_PREFIX: `${name}.`,
    SCHEMA_REGISTRY_URL: stack.schemaRegistryUrl,
    PUBLIC_PORT: '0',
    INTERNAL_PORT: '0',
    ENCRYPTION_KEYS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
    FINGERPRINT_KEY: Buffer.alloc(32, 2).toString('base64'),
    MERCHANT_ID,
    GATEWAY_BASE_URL: gatewayUrl,
    GATEWAY_MCH_ID: GATEWAY.mchId,
    GATEWAY_KEY: GATEWAY.key,
    GATEWAY_DIALECT: 'sandbox',
    IN_FLIGHT: String(inFlight),
    MAX_IN_FLIGHT: String(inFlight),
  }
}

/** The product's own topics, but events and results carry the broker's time, so that all times come from one clock. */
async function createTopics(config: Config, log: Logger): Promise<void> {
  const topics = topicNames(config.topicPrefix)
  const admin = await connectAdmin(config.kafka, log)
  const specs = topicSpecs(topics, config.topics).map((spec) =>
    spec.name === topics.commands
      ? spec
      : { ...spec, configs: { ...spec.configs, 'message.timestamp.type': 'LogAppendTime' } },
  )
  await admin.createTopics(specs)
  await admin.close()
}

async function administer({ databaseUrl }: Stack, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
