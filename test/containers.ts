import { randomBytes } from 'node:crypto'
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers'
import { SINGLE_NODE } from '../devkit/local/servers/kafka.ts'
import { anyFreePort } from '../devkit/local/servers/processes/ports.ts'

interface ContainedStack {
  databaseUrl: string
  kafkaBrokers: string[]
  schemaRegistryUrl: string
  stop(): Promise<void>
}

/** Runs the servers of a test run in Docker; undefined, with a message, if no Docker engine answers. */
export async function startContainers(): Promise<ContainedStack | undefined> {
  try {
    await getContainerRuntimeClient()
  } catch {
    process.stderr.write(
      'TEST_STACK=testcontainers, but no Docker engine answers: using the embedded stack\n',
    )
    return undefined
  }
  const starting = [startPostgres(), startKafka(), startRegistry()] as const
  const stop = async () => {
    const started = await Promise.allSettled(starting)
    await Promise.all(started.map((each) => each.status === 'fulfilled' && each.value.container.stop()))
  }
  try {
    const [postgres, kafka, registry] = await Promise.all(starting)
    return { databaseUrl: postgres.url, kafkaBrokers: [kafka.url], schemaRegistryUrl: registry.url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type Contained = { container: StartedTestContainer; url: string }

async function startPostgres(): Promise<Contained> {
  // Not a word that an output could contain by chance: a test looks for it there.
  const password = randomBytes(12).toString('hex')
  const container = await new GenericContainer('postgres:18')
    .withEnvironment({ POSTGRES_PASSWORD: password, POSTGRES_DB: 'payoutd' })
    .withCommand(['postgres', '-c', 'max_connections=200'])
    .withExposedPorts(5432)
    // Its first start is a private one, for setting up.
    .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
    .start()
  const at = `${container.getHost()}:${container.getMappedPort(5432)}`
  return { container, url: `postgres://postgres:${password}@${at}/payoutd` }
}

/** Chooses its port on the host in advance, because a broker tells its clients its address. */
async function startKafka(): Promise<Contained> {
  const { info } = await getContainerRuntimeClient()
  const port = await anyFreePort()
  const url = `${info.containerRuntime.host}:${port}`
  const settings = {
    ...SINGLE_NODE,
    'controller.quorum.voters': '1@localhost:9093',
    listeners: 'PLAINTEXT://:9092,CONTROLLER://:9093',
    'advertised.listeners': `PLAINTEXT://${url}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
  }
  const variables = Object.entries(settings).map(([name, value]) => [
    `KAFKA_${name.replaceAll('.', '_').toUpperCase()}`,
    String(value),
  ])
  const container = await new GenericContainer('apache/kafka:4.3.1')
    .withEnvironment(Object.fromEntries(variables))
    .withExposedPorts({ container: 9092, host: port })
    .withWaitStrategy(Wait.forLogMessage(/Kafka Server started/))
    .start()
  return { container, url }
}

async function startRegistry(): Promise<Contained> {
  const api = '/apis/ccompat/v7'
  const container = await new GenericContainer('apicurio/apicurio-registry:3.0.9')
    .withExposedPorts(8080)
    .withWaitStrategy(Wait.forHttp(`${api}/subjects`, 8080))
    .start()
  return { container, url: `http://${container.getHost()}:${container.getMappedPort(8080)}${api}` }
}
