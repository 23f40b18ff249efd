import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../../src/platform/eventually.fixture.ts'
import { sql } from '../../src/platform/postgres.ts'
import { inWorld, type Scene, start } from '../scenes.ts'
import { openThroughWires } from '../wires.ts'
import { MIX } from '../world.ts'

const PATIENCE_MS = 45_000

/** Bytes go nowhere on the connections that there are, nobody cuts them, and new ones are well. */
export const halfOpenConnections: Scene = {
  name: 'connections to Postgres that are open at one end alone, and are never cut',
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

/** Somebody who can write to the database makes what is queued ten times as much. */
export const tamperedAmounts: Scene = {
  name: 'amounts changed in the database while payouts are queued',
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
