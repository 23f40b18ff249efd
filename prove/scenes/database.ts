import { setTimeout as delay } from 'node:timers/promises'
import { kafkaFor } from '../../src/platform/kafka/connection.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { sql, withSession } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { takeTurns } from '../../src/stages/intake/sql/holds.ts'
import { inWorld, ONE, type Scene, start } from '../scenes.ts'
import { MERCHANT_ID } from '../world/merchants.ts'
import { openThroughWires } from '../world/wires.ts'
import { commandOf, MIX, type World } from '../world/world.ts'

const PATIENCE_MS = 45_000

/** The existing connections carry no bytes and nothing cuts them, while new ones work. */
export const halfOpenConnections: Scene = {
  name: 'connections to Postgres stay open at one end only and are never cut',
  play: async (bench, without) => {
    const { world, wires, close } = await openThroughWires(bench, { name: `half-open-${without ? 1 : 0}` })
    try {
      await start(world, without)
      await world.ask(26)
      await delay(500)
      wires.postgres.silenceThoseThere()
      await world.ask(26)
      return { ...(await world.verdict({ signal: bench.signal, patienceMs: PATIENCE_MS })), faults: 1 }
    } finally {
      await close()
    }
  },
}

const queued = sql<
  object,
  { count: number }
>`select count(*)::int as count from payouts where state = 'queued'`
const multiply = sql<{
  by: bigint
}>`update payouts set amount = amount * ${'by'}::bigint where state = 'queued'`

/** Somebody with write access to the database multiplies queued amounts by ten. */
export const tamperedAmounts: Scene = {
  name: 'amounts are changed in the database while payouts are queued',
  play: (bench, without) =>
    inWorld(bench, { review: 'any' }, async (world) => {
      const intake = await start(world, without, { roles: 'intake' })
      const payoutIds = await world.ask(8, [MIX.usual])
      await eventually('all of them queued', async () => {
        const [found] = await world.db.run(queued, {})
        return found?.count === payoutIds.length
      })
      await intake.kill()
      await world.db.run(multiply, { by: 10n })
      await start(world, without)
      world.mustEndAs('review', payoutIds)
      if (!without) {
        await eventually('all of them in review', async () =>
          (await world.kept()).every(({ state }) => state === 'review'),
        )
      }
      return payoutIds.length
    }),
}

const waiting = sql<object, { count: number }>`
  select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted`
const MONTHS = ['june', 'july', 'august', 'september', 'october', 'november', 'december', 'january']

async function isShared({ config }: World, group: string): Promise<boolean> {
  const ended = new AbortController()
  const admin = kafkaFor(config.kafka, silentLogger, ended.signal).admin()
  try {
    await admin.connect()
    const { groups } = await admin.describeGroups([group])
    return groups[0]?.state === 'Stable' && groups[0].members.length === 2
  } finally {
    await admin.disconnect()
    ended.abort()
  }
}

/**
 * The same payment to the same payee under eight names, through two partitions at once; all but the first are
 * withdrawn.
 */
export const otherIsolation: Scene = {
  name: 'the database has another default isolation, and duplicates arrive at the same moment',
  play: (bench, without) =>
    inWorld(bench, {}, async (world) => {
      const url = world.settings.DATABASE_URL as string
      const database = new URL(url).pathname.slice(1)
      await withSession(url, (session) =>
        session.query(`alter database ${database} set default_transaction_isolation = 'repeatable read'`),
      )
      for (let i = 0; i < 2; i++) await start(world, without, { roles: 'intake', group: 'both' })
      await eventually('a partition for each', () => isShared(world, `${world.config.topicPrefix}both`))
      const [first = ''] = await world.ask(1, [MIX.usual], ONE)
      await eventually('the first one', async () => (await world.kept()).length === 1)
      const same = MONTHS.map((month, i) => ({
        ...commandOf(2, `${MIX.usual}1000002`),
        ...{ payoutId: `${month}-${i}`, batchId: month, merchantId: MERCHANT_ID },
      }))
      world.expect(same)
      await world.db.transaction('test', async (tx) => {
        await tx.run(takeTurns, { merchantIds: [MERCHANT_ID] })
        await world.publish(same)
        await eventually(
          'both partitions at the turn',
          async () => ((await world.db.run(waiting, {}))[0]?.count ?? 0) >= 2,
        )
      })
      await eventually('all of them taken in', async () => (await world.kept()).length === 1 + same.length)
      const kept = await world.kept()
      const [goesOn = first] = kept.flatMap(({ payoutId, state }) =>
        payoutId !== first && state !== 'held' ? [payoutId] : [],
      )
      const others = same.filter(({ payoutId }) => payoutId !== goesOn)
      world.mustEndAs(
        'cancelled',
        others.map(({ payoutId }) => payoutId),
      )
      await start(world, without, { roles: 'dispatch,outcomes,relay' })
      await eventually('nothing waits to be sent', async () =>
        (await world.kept()).every(({ state }) => state !== 'queued'),
      )
      await world.cancel(others)
      return 1
    }),
}
