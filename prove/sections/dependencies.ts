import { setTimeout as delay } from 'node:timers/promises'
import { topicNames } from '../../src/messages/topics.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { moveOffset } from '../../src/stages/intake/sql/offsets.ts'
import { type Bench, type Row, rowOf } from '../matrix.ts'
import { many, whilePayoutsFlow } from '../world/flow.ts'
import { setFaults } from '../world/sandbox-faults.ts'
import { holds, type Wire } from '../world/wire.ts'
import { openThroughWires, type Wires } from '../world/wires.ts'
import type { World } from '../world/world.ts'

const SECTION = 'dependencies'
const MINUTES_MS = 120_000

/** A fault of one dependency while payouts flow; returns how many faults it made. */
type DependencyOutage = {
  name: string
  make: (world: World, wires: Wires, bench: Bench) => Promise<number>
}

const TROUBLES: readonly DependencyOutage[] = [
  {
    name: 'Postgres: connections cut repeatedly',
    make: (_, { postgres }) =>
      many(5, async () => {
        await delay(400)
        postgres.cutAll()
      }),
  },
  {
    name: 'Postgres: connection cut during a commit, outcome unknown',
    make: (_, { postgres }) =>
      many(6, async (i) => {
        postgres.cutAfter(holds('commit'))
        await eventually('a commit', () => postgres.cuts > i, 10_000)
        postgres.mend()
      }),
  },
  {
    name: 'Postgres: unreachable for seconds',
    make: (_, { postgres }) =>
      many(1, async () => {
        await delay(500)
        postgres.down()
        await delay(4_000)
        postgres.mend()
      }),
  },
  {
    name: 'Postgres: hangs for seconds',
    make: (_, { postgres }) =>
      many(1, async () => {
        await delay(500)
        postgres.hang()
        await delay(3_000)
        postgres.mend()
        postgres.cutAll()
      }),
  },
  {
    name: 'Postgres: backends frozen for twenty seconds, then resumed',
    make: async (world) => {
      await delay(500)
      const frozen = (await world.db.run(backends, { name: 'payoutd', limit: 3 })).map(({ pid }) => pid)
      for (const pid of frozen) process.kill(pid, 'SIGSTOP')
      try {
        await delay(20_000)
      } finally {
        for (const pid of frozen) process.kill(pid, 'SIGCONT')
      }
      return frozen.length
    },
  },
  {
    name: 'Postgres: killed and restarted',
    make: (_, __, { stack }) =>
      many(1, async () => {
        await delay(500)
        await stack.kill('postgres')
        await stack.restart('postgres')
      }),
  },
  {
    name: 'Postgres: statements cancelled at random',
    make: (world) =>
      many(20, async () => {
        await world.db.run(cancelled, { name: 'payoutd' })
        await delay(100)
      }),
  },
  {
    name: 'Postgres: deadlocks, often with payoutd as the victim',
    make: (world) =>
      many(8, async () => {
        const ids = (await world.kept()).map(({ payoutId }) => payoutId).reverse()
        await world.db
          .transaction('test', async (tx) => {
            for (const payoutId of ids.slice(0, 20)) await tx.run(lockOne, { payoutId })
            await delay(100)
            for (const payoutId of ids.slice(20)) await tx.run(lockOne, { payoutId })
          })
          .catch(() => undefined)
      }),
  },
  {
    name: 'Kafka: killed and restarted',
    make: (_, __, { stack }) =>
      many(1, async () => {
        await delay(500)
        await stack.kill('kafka')
        await stack.restart('kafka')
      }),
  },
  {
    name: 'Kafka: offsets reset to zero, so that everything is read again',
    make: (world) =>
      many(2, async () => {
        await delay(1_000)
        const { commands: topic } = topicNames(world.config.topicPrefix)
        const moved = [0, 1].map((partition) => ({ topic, partition, nextOffset: 0n, epoch: null }))
        await world.db.write('test', moveOffset, { moved })
        await world.procs.at(-1)?.kill()
        await (await world.start()).up()
      }),
  },
  {
    name: 'registry: down at the start and again later',
    make: (world, { registry }) =>
      many(2, async () => {
        registry.down()
        await world.procs.at(-1)?.kill()
        const begun = await world.start()
        await Promise.race([begun.gone, delay(3_000)])
        registry.mend()
        await begun.kill()
        await (await world.start()).up()
        registry.down()
        await world.ask(3)
        await delay(500)
        registry.mend()
      }),
  },
  {
    name: 'gateway: unreachable for seconds',
    make: (_, { gateway }) =>
      many(3, async () => {
        gateway.down()
        await delay(1_000)
        gateway.mend()
        await delay(500)
      }),
  },
  {
    name: 'gateway: accepts the order, then resets the connection',
    make: (_, { gateway }) =>
      many(6, async (i) => {
        gateway.cutAfter(holds('agentpay/apply'))
        await eventually('an apply', () => gateway.cuts > i, 10_000)
        gateway.mend()
      }),
  },
  {
    name: 'gateway: answers after the timeout',
    make: (_, { gateway }) =>
      many(2, async () => {
        gateway.slow(2_000)
        await delay(2_500)
        gateway.mend()
        await delay(500)
      }),
  },
  {
    name: 'gateway: hangs for seconds',
    make: (_, { gateway }) =>
      many(2, async () => {
        gateway.hang()
        await delay(2_000)
        gateway.mend()
        await delay(500)
      }),
  },
  ...Object.entries<(gateway: Wire) => void>({
    'unreachable for': (gateway) => gateway.down(),
    'hangs for': (gateway) => gateway.hang(),
    'answers after the timeout for': (gateway) => gateway.slow(2_000),
    'accepts orders, then resets the connections, for': (gateway) =>
      gateway.cutAfter(holds('agentpay/apply'), Number.POSITIVE_INFINITY),
  }).map(([what, strike]) => ({
    name: `gateway: ${what} two minutes`,
    make: async (_: World, { gateway }: Wires) => {
      strike(gateway)
      await delay(MINUTES_MS)
      gateway.mend()
      return 1
    },
  })),
  {
    name: 'gateway: answers garbage for two minutes',
    make: async (world) => {
      await setFaults(
        world,
        ['apply', 'queryPayout', 'queryBalance'].map((operation) => ({
          fault: 'garbage',
          operation,
          percent: 100,
        })),
      )
      await delay(MINUTES_MS)
      await setFaults(world, [])
      return 1
    },
  },
  ...['500', 'garbage', 'unsigned', 'wrongly-signed', 'reset', 'hang'].map((fault) => ({
    name: `gateway: a third of its answers: ${fault}`,
    make: async (world: World) => {
      // The balance has no signature that could be wrong.
      const signed = fault.includes('signed')
      const operations = ['apply', 'queryPayout', ...(signed ? [] : ['queryBalance'])]
      const struck = operations.map((operation) => ({
        ...{ fault, operation, percent: 33 },
        ...(signed ? {} : { done: operation === 'apply' }),
      }))
      await setFaults(world, struck)
      await delay(4_000)
      await setFaults(world, [])
      return 1
    },
  })),
]

const cancelled = sql<{ name: string }, { ended: boolean }>`
  select pg_cancel_backend(pid) as ended from pg_stat_activity
  where application_name = ${'name'} and datname = current_database() and state = 'active'`

const backends = sql<{ name: string; limit: number }, { pid: number }>`
  select pid from pg_stat_activity where application_name = ${'name'} and datname = current_database()
  order by state <> 'active', pid limit ${'limit'}`

const lockOne = sql<{ payoutId: string }, object>`
  select from payouts where payout_id = ${'payoutId'} for update`

/** The part that the quick form runs. */
const QUICK = new Set(['Postgres: connection cut during a commit, outcome unknown'])

/** Each dependency fails in each of its ways while payouts flow. */
export async function* dependencies(bench: Bench): AsyncGenerator<Row> {
  for (const [i, trouble] of TROUBLES.filter(({ name }) => !bench.quick || QUICK.has(name)).entries()) {
    bench.signal.throwIfAborted()
    bench.tell(trouble.name)
    const options = { name: `dependency-${i}`, dialect: { queryAfterMs: [500, 700, 1000] } }
    const { world, wires, close } = await openThroughWires(bench, options)
    try {
      const faults = await whilePayoutsFlow(world, () => trouble.make(world, wires, bench))
      yield rowOf(
        { section: SECTION, name: trouble.name, runs: 1, faults },
        await world.verdict({ signal: bench.signal }),
      )
    } finally {
      await close()
    }
  }
}
