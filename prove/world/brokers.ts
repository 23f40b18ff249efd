import { mkdirSync } from 'node:fs'
import path from 'node:path'
import kafkajs, { Kafka, type PartitionMetadata } from 'kafkajs'
import { kafka, kafkaId } from '../../devkit/local/servers/kafka.ts'
import { layoutOf } from '../../devkit/local/servers/layout.ts'
import { Part } from '../../devkit/local/servers/part.ts'
import { anyFreePort } from '../../devkit/local/servers/processes/ports.ts'
import { startWatchdog, type Watchdog } from '../../devkit/local/servers/processes/watchdog.ts'
import { logCreator } from '../../src/platform/kafka/kafkajs/kafkajs-log.ts'
import type { Logger } from '../../src/platform/log.ts'
import { systemClock } from '../../src/platform/running/clock.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { Wire } from './wire.ts'

const IDS = [1, 2, 3]
/** For an answer about the cluster: nobody waits longer for a broker that was just frozen. */
const ANSWER_MS = 5_000

/**
 * Three real Kafka nodes, each broker and controller. A node has two addresses: its own, for the other nodes and
 * the prover, and its wire, the only one that payoutd knows.
 */
export class Brokers {
  /** Bootstrap addresses past the wires, and through them. */
  readonly direct: string[]
  readonly wired: string[]
  readonly wires: Wire[]
  /** Every unrequested end of a broker, as text. */
  readonly lost: string[] = []
  readonly #parts = new Map<number, Part>()
  readonly #frozen = new Set<number>()
  readonly #watchdog: Watchdog
  readonly #log: Logger

  private constructor(ports: readonly Ports[], wires: Wire[], dir: string, log: Logger) {
    this.direct = ports.map(({ direct }) => `127.0.0.1:${direct}`)
    this.wires = wires
    this.wired = wires.map(({ port }) => `127.0.0.1:${port}`)
    this.#watchdog = startWatchdog(path.join(dir, 'pids'))
    this.#log = log
  }

  /** Starts them in a new `dir`; throws `ServerFailed` if one does not start. */
  static async start(dir: string, log: Logger): Promise<Brokers> {
    mkdirSync(dir, { recursive: true })
    const ports = await threePorts()
    const wires = await Promise.all(ports.map(({ wired }) => Wire.to(`127.0.0.1:${wired}`)))
    const brokers = new Brokers(ports, wires, dir, log)
    const host = { watchdog: brokers.#watchdog, clock: systemClock }
    const clusterId = kafkaId()
    const voters = ports.map(({ controller }, i) => `${IDS[i]}@127.0.0.1:${controller}`).join(',')
    for (const [i, id] of IDS.entries()) {
      const { direct, wired, controller } = ports[i] as Ports
      const layout = layoutOf(path.join(dir, `broker-${id}`))
      mkdirSync(layout.logs, { recursive: true })
      const settings = {
        'node.id': id,
        'controller.quorum.voters': voters,
        listeners: `DIRECT://127.0.0.1:${direct},WIRED://127.0.0.1:${wired},CONTROLLER://127.0.0.1:${controller}`,
        'advertised.listeners': `DIRECT://127.0.0.1:${direct},WIRED://${brokers.wired[i]}`,
        'listener.security.protocol.map': 'DIRECT:PLAINTEXT,WIRED:PLAINTEXT,CONTROLLER:PLAINTEXT',
        'inter.broker.listener.name': 'DIRECT',
        'offsets.topic.replication.factor': IDS.length,
      }
      const options = { layout, port: direct, controllerPort: controller, tuning: 'demo' as const }
      const server = kafka({ ...options, member: { clusterId, settings } }, host)
      const part = new Part(server, (_, how) => brokers.lost.push(`broker ${id} ${how} by itself`))
      brokers.#parts.set(id, part)
    }
    try {
      await brokers.allUp()
    } catch (error) {
      await brokers.stop()
      throw error
    }
    return brokers
  }

  /** Starts one that was killed; resolves once it works. */
  async start(id: number): Promise<void> {
    await this.#part(id).start()
  }

  /** Starts those that are gone; resolves once all three work. */
  async allUp(): Promise<void> {
    const gone = [...this.#parts.values()].filter(({ pid }) => pid === undefined)
    // Waits for all even if one fails: a server that is still starting could not be stopped.
    const started = await Promise.allSettled(gone.map((part) => part.start()))
    for (const each of started) if (each.status === 'rejected') throw each.reason
  }

  /** Like a crash. */
  kill(id: number): Promise<void> {
    this.#frozen.delete(id)
    return this.#part(id).kill()
  }

  /** Freezes it, so that the others believe it dead; after `wake` it continues with its old beliefs. */
  freeze(id: number): void {
    process.kill(this.#part(id).pid as number, 'SIGSTOP')
    this.#frozen.add(id)
  }

  wake(id: number): void {
    process.kill(this.#part(id).pid as number, 'SIGCONT')
    this.#frozen.delete(id)
  }

  /** Which broker leads the first partition of a topic. */
  async leaderOf(topic: string): Promise<number> {
    let leader = -1
    await eventually(`a leader of ${topic}`, async () => {
      const first = (await this.#partitions(topic)).find(({ partitionId }) => partitionId === 0)
      leader = first?.leader ?? -1
      return leader >= 0
    })
    return leader
  }

  /** Waits until every broker has everything of a topic. */
  async inSync(topic: string): Promise<void> {
    await eventually(`${topic} on all brokers`, async () =>
      (await this.#partitions(topic)).every(({ isr }) => isr.length === IDS.length),
    )
  }

  /**
   * Moves a partition to some brokers only; it has no leader once they are gone. `unclean`: a broker that returns
   * leads it even if it lacks what another had. Waits until they hold it.
   */
  async giveTo(ids: number[], topic: string, partition: number, unclean = false): Promise<void> {
    const admin = this.#kafka().admin()
    await admin.connect()
    // With more, Kafka does not trust a killed broker to have everything (KIP-966).
    const configEntries = [
      { name: 'min.insync.replicas', value: '1' },
      { name: 'unclean.leader.election.enable', value: String(unclean) },
    ]
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }]
    const topics = [{ topic, partitionAssignment: [{ partition, replicas: ids }] }]
    await admin
      .alterConfigs({ validateOnly: false, resources })
      .then(() => admin.alterPartitionReassignments({ topics }))
      .finally(() => admin.disconnect())
    await eventually(`partition ${partition} of ${topic} on ${ids.length} brokers`, async () => {
      const found = (await this.#partitions(topic)).find(({ partitionId }) => partitionId === partition)
      const all = [found?.replicas, found?.isr].every((held) => held?.length === ids.length)
      return all && ids.includes(found?.leader ?? -1)
    })
  }

  /** Kills them: nobody needs their data. */
  async stop(): Promise<void> {
    await Promise.all([...this.#parts.values()].map((part) => part.kill()))
    await Promise.all(this.wires.map((wire) => wire.close()))
    this.#watchdog.close()
  }

  /** Repeats until it gets an answer without gone or frozen brokers: until the others notice, they still name them. */
  async #partitions(topic: string): Promise<PartitionMetadata[]> {
    let partitions: PartitionMetadata[] = []
    await eventually(`word of ${topic}`, async () => {
      const admin = this.#kafka().admin()
      try {
        await admin.connect()
        const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
        partitions = topics.flatMap((each) => each.partitions)
      } catch (error) {
        this.#log.debug({ err: error }, 'no word of a topic')
      } finally {
        await admin.disconnect()
      }
      return partitions.length > 0
    })
    return partitions
  }

  #kafka(): Kafka {
    const brokers = this.direct.filter((_, i) => !this.#frozen.has(IDS[i] as number))
    return new Kafka({ brokers, requestTimeout: ANSWER_MS, logCreator: logCreator(this.#log) })
  }

  #part(id: number): Part {
    const part = this.#parts.get(id)
    if (!part) throw new Error(`there is no broker ${id}`)
    return part
  }
}

type Ports = { direct: number; wired: number; controller: number }

/** Three for each broker; a broker that was killed must find its own free again. */
async function threePorts(): Promise<Ports[]> {
  const ports = new Set<number>()
  while (ports.size < 3 * IDS.length) ports.add(await anyFreePort())
  const left = [...ports]
  const next = () => left.pop() as number
  return IDS.map(() => ({ direct: next(), wired: next(), controller: next() }))
}
