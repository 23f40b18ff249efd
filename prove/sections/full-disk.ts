import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { layoutOf } from '../../devkit/local/servers/layout.ts'
import { type Stack, startStack } from '../../devkit/local/servers/stack.ts'
import { withSession } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { whilePayoutsFlow } from '../world/flow.ts'
import { SmallDisk } from '../world/small-disk.ts'
import { World } from '../world/world.ts'

/** Room for a fresh Postgres, its write-ahead log and one run. */
const DISK_MB = 256
const TIMES = 3
const FULL_MS = 4_000

type Fullness = { name: string; whileFull: (stack: Stack) => Promise<void> }

const FULLNESSES: readonly Fullness[] = [
  { name: 'disk full, tables cannot grow', whileFull: async () => delay(FULL_MS) },
  {
    name: 'disk full, the write-ahead log cannot grow, and the server stops',
    whileFull: async ({ databaseUrl }) => {
      // Postgres's next log file finds no room.
      await eventually('Postgres stopped', () =>
        withSession(databaseUrl, (session) => session.query('select pg_switch_wal()')).then(
          () => false,
          () => true,
        ),
      )
      await delay(FULL_MS)
    },
  },
]

/** Fills the disk of Postgres for seconds, repeatedly, while payouts flow. It needs the right to mount a disk. */
export async function* fullDisk(bench: Bench): AsyncGenerator<Row> {
  // Outside the prover's own folder: a disk left by a killed prover would keep that folder from being emptied.
  const layout = layoutOf(mkdtempSync(path.join(tmpdir(), 'payoutd-full-disk-')))
  const disk = SmallDisk.mount(layout.data, DISK_MB)
  try {
    if (!disk) return bench.tell('not tried: mounting a small disk needs root on Linux')
    const { kafkaBrokers, schemaRegistryUrl } = bench.stack
    const stack = await startStack({
      ...{ dir: layout.dir, given: { kafkaBrokers, schemaRegistryUrl }, sandbox: false, ports: 'any' },
      log: bench.log,
    })
    try {
      for (const [i, fullness] of FULLNESSES.entries()) {
        bench.signal.throwIfAborted()
        bench.tell(fullness.name)
        const world = await World.open({ ...bench, stack, name: `full-disk-${i}` })
        try {
          await whilePayoutsFlow(world, () => fillAgainAndAgain(disk, stack, fullness))
          const row = rowOf(
            { section: 'full disk', name: `Postgres: ${fullness.name}`, runs: 1, faults: TIMES },
            await world.verdict({ signal: bench.signal }),
          )
          yield withWrong(
            row,
            wasFull(layout.logs) ? [] : ['the disk never filled: Postgres always had room'],
          )
        } finally {
          await world.close()
        }
      }
    } finally {
      await stack.stop()
    }
  } finally {
    disk?.unmount()
    rmSync(layout.dir, { recursive: true })
  }
}

async function fillAgainAndAgain(disk: SmallDisk, stack: Stack, { whileFull }: Fullness): Promise<void> {
  for (let time = 0; time < TIMES; time++) {
    await delay(500)
    disk.fill()
    await whileFull(stack)
    disk.empty()
    if (!(await canWrite(stack))) await stack.restart('postgres')
    await delay(1_000)
  }
}

const canWrite = ({ databaseUrl }: Stack): Promise<boolean> =>
  withSession(databaseUrl, (session) => session.query('create table room (); drop table room')).then(
    () => true,
    () => false,
  )

/** By Postgres's own log, the current one or that of the run before. */
const wasFull = (logs: string): boolean =>
  ['postgres.log', 'postgres.log.1']
    .map((name) => path.join(logs, name))
    .some((file) => existsSync(file) && readFileSync(file, 'utf8').includes('No space left on device'))
