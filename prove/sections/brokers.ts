import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Partitioners, type PartitionMetadata } from 'kafkajs'
import { payoutKey } from '../../src/domain/identifiers.ts'
import { topicNames } from '../../src/messages/topics.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { Brokers } from '../world/brokers.ts'
import { many, UP_WITHIN_MS, whilePayoutsFlow } from '../world/flow.ts'
import type { Wire } from '../world/wire.ts'
import { commandOf, MIX, World } from '../world/world.ts'

/** How long payoutd waits for an answer of Kafka (`requestTimeout` in src/platform/kafka/connection.ts). */
const PATIENCE_MS = 30_000

/** A fault of the brokers while payouts flow; returns how many faults it made. */
type BrokerFault = { name: string; make: (brokers: Brokers, world: World) => Promise<number> }

const TROUBLES: readonly BrokerFault[] = [
  {
    name: 'acknowledges seconds late',
    make: ({ wires }) => many(1, () => slow(wires, 4_000, 10_000)),
  },
  {
    name: 'acknowledges later than the producer waits',
    make: ({ wires }) => many(1, () => slow(wires, PATIENCE_MS + 5_000, PATIENCE_MS + 10_000)),
  },
  {
    name: 'connections cut repeatedly',
    make: ({ wires }) =>
      many(10, async () => {
        await delay(400)
        for (const wire of wires) wire.cutAll()
      }),
  },
  {
    name: 'connection cut during a produce, outcome unknown',
    make: async ({ wires }) => {
      const before = cuts(wires)
      await many(6, async () => {
        const sofar = cuts(wires)
        for (const wire of wires) wire.cutAfter(isProduce)
        await eventually('a produce', () => cuts(wires) > sofar)
        for (const wire of wires) wire.mend()
      })
      return cuts(wires) - before
    },
  },
  {
    name: 'hangs for seconds',
    make: ({ wires }) =>
      many(2, async () => {
        for (const wire of wires) wire.hang()
        await delay(4_000)
        for (const wire of wires) wire.mend()
        await delay(500)
      }),
  },
  {
    name: 'leader killed and restarted later',
    make: (brokers, world) =>
      many(3, async () => {
        const leader = await leaderWithMoreToDo(brokers, world)
        await brokers.kill(leader)
        await delay(4_000)
        await brokers.allUp()
        await brokers.inSync(resultsOf(world))
      }),
  },
  {
    name: 'leader frozen, and resumed once another broker leads',
    make: (brokers, world) =>
      many(2, async () => {
        const leader = await leaderWithMoreToDo(brokers, world)
        brokers.freeze(leader)
        try {
          const other = async () => (await brokers.leaderOf(resultsOf(world))) !== leader
          await eventually('another leader', other)
        } finally {
          brokers.wake(leader)
        }
        await brokers.inSync(resultsOf(world))
      }),
  },
  {
    name: 'one of three brokers killed for good',
    make: (brokers, world) => many(1, async () => brokers.kill(await leaderWithMoreToDo(brokers, world))),
  },
  {
    name: 'two of three brokers down for seconds, so that nothing can be published',
    make: (brokers, world) =>
      many(1, async () => {
        const leader = await leaderWithMoreToDo(brokers, world)
        await Promise.all([brokers.kill(leader), brokers.kill((leader % 3) + 1)])
        await delay(4_000)
        await brokers.allUp()
      }),
  },
]

/** Commands meanwhile go to the other partition: a producer to the first one waits for it. */
const LEADERLESS: BrokerFault = {
  name: 'one partition of commands has no leader; running and newly started processes read the other',
  async make(brokers, world) {
    await (await world.start()).up(UP_WITHIN_MS)
    return many(3, async (i) => {
      const holder = i + 1
      await world.ask(26)
      await brokers.giveTo([holder], commandsOf(world), 0)
      await brokers.kill(holder)
      await allPaid(world, await askIn(world, 1))
      await world.killAll()
      await (await world.start()).up(UP_WITHIN_MS)
      await allPaid(world, await askIn(world, 1))
      await brokers.allUp()
      await brokers.inSync(resultsOf(world))
    })
  },
}

/** So that what it read last is gone and others have its offsets: the log no longer ends before them. */
const OVERTAKEN: BrokerFault = {
  name: 'a new leader lacks the last commands and gets others at their offsets before payoutd looks, while it runs or before it starts',
  async make(brokers, world) {
    await (await world.start()).up(UP_WITHIN_MS)
    return many(4, async (i) => {
      const isRunning = i % 2 === 0
      await brokers.giveTo([1, 2], commandsOf(world), 0, true)
      const leader = await brokers.leaderOf(commandsOf(world))
      await allPaid(world, await askIn(world, 0))
      await brokers.kill(3 - leader)
      await allPaid(world, await askIn(world, 0))
      if (isRunning) for (const wire of brokers.wires) wire.hang()
      else await world.killAll()
      await brokers.kill(leader)
      await brokers.start(3 - leader)
      await many(3, async () => void (await askIn(world, 0)))
      if (isRunning) for (const wire of brokers.wires) wire.mend()
      else await (await world.start()).up(UP_WITHIN_MS)
      await brokers.allUp()
    })
  },
}

const STORIES: readonly BrokerFault[] = [
  ...TROUBLES.map(({ name, make }) => ({
    name,
    make: (brokers: Brokers, world: World) => whilePayoutsFlow(world, () => make(brokers, world)),
  })),
  LEADERLESS,
  OVERTAKEN,
]

const commandsOf = ({ config }: World): string => topicNames(config.topicPrefix).commands
const resultsOf = ({ config }: World): string => topicNames(config.topicPrefix).results

/** The leader of the results now, with results about to come, so that its end hits them. */
async function leaderWithMoreToDo(brokers: Brokers, world: World): Promise<number> {
  const leader = await brokers.leaderOf(resultsOf(world))
  await world.ask(26)
  await delay(200)
  return leader
}

/** Publishes some commands, all in one of the two partitions. Returns their payoutIds. */
async function askIn(world: World, partition: number): Promise<string[]> {
  const partitionOf = Partitioners.DefaultPartitioner()
  const partitionMetadata = [0, 1].map((partitionId) => ({ partitionId, leader: 0 })) as PartitionMetadata[]
  const first = FAR_FROM_ONE_ANOTHER * (world.asked.length + 1)
  const commands = Array.from({ length: 26 }, (_, i) =>
    commandOf(first + i, `${MIX.usual}${1_000_000 + first + i}`),
  ).filter(({ merchantId, payoutId }) => {
    const message = { key: payoutKey({ merchantId, payoutId }), value: null }
    return partitionOf({ topic: commandsOf(world), partitionMetadata, message }) === partition
  })
  world.expect(commands)
  await world.publish(commands)
  return commands.map(({ payoutId }) => payoutId)
}

/** Keeps these numbers apart from those requested meanwhile. */
const FAR_FROM_ONE_ANOTHER = 1_000

const allPaid = (world: World, payoutIds: readonly string[]) =>
  eventually(
    'all of them paid',
    async () => {
      const paid = (await world.kept()).filter(({ state }) => state === 'paid')
      const ids = new Set(paid.map(({ payoutId }) => payoutId))
      return payoutIds.every((payoutId) => ids.has(payoutId))
    },
    UP_WITHIN_MS,
  )

async function slow(wires: readonly Wire[], answerMs: number, forMs: number): Promise<void> {
  for (const wire of wires) wire.slow(answerMs)
  await delay(forMs)
  for (const wire of wires) wire.mend()
}

const cuts = (wires: readonly Wire[]): number => wires.reduce((all, { cuts }) => all + cuts, 0)

/** A whole Produce request: its length, and 0 as the key of its API. */
const isProduce = (bytes: Buffer): boolean =>
  bytes.length > 6 && bytes.readInt32BE(0) === bytes.length - 4 && bytes.readInt16BE(4) === 0

/** Three brokers of its own, and the wires to them, fail in each of their ways while payouts flow. */
export async function* brokers(bench: Bench): AsyncGenerator<Row> {
  const started = await Brokers.start(path.join(bench.dir, 'brokers'), bench.log)
  try {
    for (const [i, fault] of STORIES.entries()) {
      bench.signal.throwIfAborted()
      bench.tell(fault.name)
      await started.allUp()
      const world = await World.open({
        ...{ dir: bench.dir, log: bench.log, name: `brokers-${i}` },
        stack: { ...bench.stack, kafkaBrokers: started.direct },
        settings: { TOPIC_REPLICATION: '3' },
        through: { KAFKA_BROKERS: started.wired.join(',') },
      })
      try {
        const faults = await fault.make(started, world)
        const row = rowOf(
          { section: 'brokers', name: `Kafka on three brokers: ${fault.name}`, runs: 1, faults },
          // payoutd takes long to give up a request without an answer.
          await world.verdict({ signal: bench.signal, patienceMs: 3 * PATIENCE_MS }),
        )
        yield withWrong(row, started.lost.splice(0))
      } finally {
        await world.close()
      }
    }
  } finally {
    await started.stop()
  }
}
