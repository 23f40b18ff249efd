import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Java, type Tuning } from './java.ts'
import { fetched, type Layout } from './layout.ts'
import { type Host, ServerProcess } from './processes/process.ts'
import { end, type Server, untilReady } from './server.ts'

export interface KafkaOptions {
  layout: Layout
  port: number
  controllerPort: number
  tuning: Tuning
  /** Set if the node is one of several. */
  member?: Member
}

/** A node's cluster, and the settings that differ from those of a single node. */
export interface Member {
  clusterId: string
  settings: KafkaSettings & { 'node.id': number }
}

type KafkaSettings = Record<string, string | number | boolean>

/** What one small single node needs, wherever it runs: no other replica, little memory, no long waits. */
export const SINGLE_NODE = {
  'process.roles': 'broker,controller',
  'node.id': 1,
  'controller.listener.names': 'CONTROLLER',
  'auto.create.topics.enable': false,
  'offsets.topic.replication.factor': 1,
  'offsets.topic.num.partitions': 1,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
  'transaction.state.log.num.partitions': 1,
  'transaction.max.timeout.ms': 60_000,
  'share.coordinator.state.topic.replication.factor': 1,
  'share.coordinator.state.topic.min.isr': 1,
  'share.coordinator.state.topic.num.partitions': 1,
  // A single consumer has nobody to wait for.
  'group.initial.rebalance.delay.ms': 0,
  // 128 MB by default, for compacted logs that a development stack does not have.
  'log.cleaner.dedupe.buffer.size': 8 * 1024 * 1024,
  // After a SIGKILL the broker waits for its former session to end: 2 s instead of 9.
  'broker.session.timeout.ms': 2_000,
  'broker.heartbeat.interval.ms': 500,
}

/** One Kafka node that is broker and controller, on the loopback address only. */
export function kafka(options: KafkaOptions, host: Host): Server {
  const { layout, tuning, member } = options
  const dataDir = path.join(layout.data, 'kafka')
  const told = settings(options, dataDir)
  const java = new Java('kafka', layout, tuning)
  return {
    start: async () => {
      if (!existsSync(dataDir)) await format(dataDir, told['node.id'], member?.clusterId ?? kafkaId())
      const file = path.join(dataDir, 'server.properties')
      await writeFile(file, properties(told))
      const jars = path.join(fetched('kafka'), '*')
      const args = [...(await java.flags()), '-cp', jars, 'kafka.Kafka', file]
      const running = await ServerProcess.spawn(
        { file: java.file, args },
        path.join(layout.logs, 'kafka.log'),
        'TERM',
        host,
      )
      // The broker logs this once it is registered and unfenced and accepts records.
      await untilReady('kafka', running, host.clock, () => running.said('Kafka Server started'))
      return running
    },
    stop: async (running) => {
      if (await end(running, 'SIGTERM')) await java.ended()
    },
  }
}

/**
 * Writes what `kafka-storage format` would write, without the second that its JVM takes. The checkpoint contains
 * the feature levels, which are 0 without it; set-up created it with Kafka's own tool.
 */
async function format(dataDir: string, nodeId: number, clusterId: string): Promise<void> {
  const unfinished = `${dataDir}.unfinished`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(path.join(unfinished, 'log'), { recursive: true })
  const meta = { version: 1, 'node.id': nodeId, 'cluster.id': clusterId, 'directory.id': kafkaId() }
  await writeFile(path.join(unfinished, 'log', 'meta.properties'), properties(meta))
  const checkpoint = 'bootstrap.checkpoint'
  await copyFile(
    path.join(fetched('kafka'), 'formatted', checkpoint),
    path.join(unfinished, 'log', checkpoint),
  )
  await rename(unfinished, dataDir)
}

/** An id as Kafka wants it, of a cluster or a directory: 16 bytes in URL-safe base64, without a leading dash. */
export function kafkaId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? kafkaId() : id
}

function settings({ port, controllerPort, member }: KafkaOptions, dataDir: string) {
  return {
    ...SINGLE_NODE,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'log.dirs': path.join(dataDir, 'log'),
    ...member?.settings,
  }
}

function properties(values: KafkaSettings): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}
