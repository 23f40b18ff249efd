import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startStack } from '../../devkit/local/servers/stack.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { whilePayoutsFlow } from '../world/flow.ts'
import { World } from '../world/world.ts'

/** Where Debian's package `libfaketime` puts it. */
const LIBRARY = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketime.so.1`

/**
 * Clock offsets in seconds, one after the other. Large jumps go only forward, as a backward one would delay
 * everything due.
 */
const OFFSETS = [-2, 60, 55, 3_600, 3_595]

const databaseNow = sql<object, { now: number }>`select now() as now`

/**
 * The clock of Postgres jumps while payouts flow: leases, grace and deadlines follow it. Only if libfaketime is
 * installed.
 */
export async function* movedClock(bench: Bench): AsyncGenerator<Row> {
  if (bench.quick) return
  if (!existsSync(LIBRARY)) return bench.tell('not tried: that takes the package libfaketime (Debian)')
  const dir = path.join(bench.dir, 'moved-clock')
  const offsetFile = `${dir}.offset`
  const put = (seconds: number) => writeFileSync(offsetFile, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  put(0)
  const faked = { LD_PRELOAD: LIBRARY, FAKETIME_TIMESTAMP_FILE: offsetFile, FAKETIME_NO_CACHE: '1' }
  Object.assign(process.env, faked)
  const { kafkaBrokers, schemaRegistryUrl } = bench.stack
  const stack = await startStack({
    ...{ dir, fresh: true, given: { kafkaBrokers, schemaRegistryUrl }, sandbox: false, ports: 'any' },
    log: bench.log,
  }).finally(() => {
    for (const name of Object.keys(faked)) delete process.env[name]
  })
  try {
    const world = await World.open({ ...bench, stack, name: 'moved-clock' })
    try {
      const jumps = await whilePayoutsFlow(world, async () => {
        let moved = 0
        for (const seconds of OFFSETS) {
          await delay(3_000)
          put(seconds)
          const [row] = await world.db.run(databaseNow, {})
          if (Math.abs((row?.now ?? 0) - Date.now() - seconds * 1_000) < 1_000) moved++
        }
        return moved
      })
      const row = rowOf(
        {
          section: 'moved clock',
          name: 'Postgres: clock moved forward by an hour in all, and back by seconds',
          runs: 1,
          faults: OFFSETS.length,
        },
        await world.verdict({ signal: bench.signal }),
      )
      yield withWrong(row, jumps === OFFSETS.length ? [] : [`the clock moved only ${jumps} times`])
    } finally {
      await world.close()
    }
  } finally {
    await stack.stop()
  }
}
