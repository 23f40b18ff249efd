import { setTimeout as delay } from 'node:timers/promises'
import { type Bench, type Row, rowOf } from '../matrix.ts'
import type { Proc } from '../world/proc.ts'
import { MIX, World } from '../world/world.ts'

const SECTION = 'replicas'

/** Kinds of process that an installation may mix; one of each answers callbacks behind the same address. */
const KINDS = ['intake,dispatch,outcomes,relay', 'dispatch,relay', 'intake,dispatch', 'dispatch']

/**
 * One to eight processes that join and leave while payouts flow: the first has all roles and the callback endpoint,
 * the others share everything else. `leave` is how a process ends.
 */
async function crowd(bench: Bench, name: string, count: number, leave: 'SIGTERM' | 'SIGKILL'): Promise<Row> {
  const world = await World.open({ ...bench, name })
  let faults = 0
  try {
    let endpoint = await world.start()
    await endpoint.up()
    const others: Proc[] = []
    for (let i = 1; i < count; i++) {
      await world.ask(26)
      // A second callback endpoint would need a second port, but a gateway calls back to one address.
      others.push(await world.start({ roles: KINDS[1 + (i % (KINDS.length - 1))] ?? 'dispatch' }))
      await delay(300)
    }
    await world.ask(52)
    for (const proc of others) {
      await delay(200)
      proc.signal(leave)
      faults++
    }
    // The rolling restart: its successor takes over the callback endpoint.
    endpoint.signal(leave)
    await endpoint.gone
    endpoint = await world.start()
    faults++
    await world.ask(26)
    await endpoint.up()
    return rowOf(
      { section: SECTION, name: `${count} processes join and leave by ${leave}`, runs: 1, faults },
      await world.verdict({ signal: bench.signal }),
    )
  } finally {
    await world.close()
  }
}

/** One process's clock is an hour ahead, another's an hour behind. */
async function wrongClocks(bench: Bench): Promise<Row> {
  const world = await World.open({ ...bench, name: 'clocks' })
  try {
    await (await world.start({ clockOffMs: 3_600_000 })).up()
    await world.start({ roles: 'dispatch,relay', clockOffMs: -3_600_000 })
    await world.start({ roles: 'dispatch,relay' })
    await world.ask(52)
    return rowOf(
      { section: SECTION, name: 'clocks an hour fast and an hour slow', runs: 1, faults: 2 },
      await world.verdict({ signal: bench.signal }),
    )
  } finally {
    await world.close()
  }
}

/** A process sleeps past its lease with calls in flight, wakes up, and finds that others did its work. */
async function sleepers(bench: Bench): Promise<Row> {
  const world = await World.open({ ...bench, name: 'sleepers' })
  let faults = 0
  try {
    await (await world.start({ roles: 'intake,outcomes,relay' })).up()
    const pair = [
      await world.start({ roles: 'dispatch,relay' }),
      await world.start({ roles: 'dispatch,relay' }),
    ]
    await Promise.all(pair.map((proc) => proc.up()))
    for (let i = 0; i < (bench.quick ? 1 : 4); i++) {
      const sleeper = pair[i % 2] as Proc
      await world.ask(26, [MIX.usual, MIX['never called back'], MIX['taken, never answered']])
      await delay(150)
      sleeper.signal('SIGSTOP')
      faults++
      await delay(5_500)
      sleeper.signal('SIGCONT')
    }
    return rowOf(
      { section: SECTION, name: 'frozen past the lease, then resumed', runs: faults, faults },
      await world.verdict({ signal: bench.signal }),
    )
  } finally {
    await world.close()
  }
}

export async function* replicas(bench: Bench): AsyncGenerator<Row> {
  const sizes = bench.quick ? [3] : [1, 2, 4, 8]
  for (const size of sizes) {
    for (const leave of bench.quick ? (['SIGTERM'] as const) : (['SIGTERM', 'SIGKILL'] as const)) {
      bench.tell(`${size} processes, ${leave}`)
      yield await crowd(bench, `crowd-${size}-${leave}`, size, leave)
    }
  }
  bench.tell('clocks')
  yield await wrongClocks(bench)
  bench.tell('sleepers')
  yield await sleepers(bench)
}
