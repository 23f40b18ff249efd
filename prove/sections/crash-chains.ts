import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { type Bench, type Row, rowOf } from '../matrix.ts'
import { allPoints, inWords } from '../points.ts'
import { World } from '../world/world.ts'
import { SERVE } from './crash-points.ts'

const SECTION = 'crash points'
const SEED = 20261121
const PAIRS = 60
const LIVES = 60
/** A point that one life does not reach in this time is left for the next. */
const LIFE_MS = 8_000

/** The same points for the same seed. */
const drawn = (count: number) =>
  fc.sample(fc.constantFrom(...allPoints().filter(({ name }) => SERVE.includes(name))), {
    numRuns: count,
    seed: SEED,
  })

/** A second crash during the recovery from the first, at random points. */
async function pairs(bench: Bench): Promise<Row> {
  const world = await World.open({ ...bench, name: 'crash-pairs' })
  let crashes = 0
  try {
    const points = drawn(2 * PAIRS)
    for (let i = 0; i < points.length; i += 2) {
      bench.signal.throwIfAborted()
      const [first, second] = points
        .slice(i, i + 2)
        .map((point) => ({ ...point, nth: 1, how: 'kill' as const }))
      if (!first || !second) break
      bench.tell(`${inWords(first)}, then ${inWords(second)}`)
      await world.ask(13)
      for (const crash of [first, second]) {
        const proc = await world.start({ crash })
        if (await proc.diesWithin(LIFE_MS)) crashes++
        await proc.kill()
      }
    }
    await (await world.start()).up()
    return rowOf(
      {
        section: SECTION,
        name: 'pairs: a second crash during the recovery from the first',
        runs: PAIRS,
        faults: crashes,
      },
      await world.verdict({ signal: bench.signal }),
    )
  } finally {
    await world.close()
  }
}

/**
 * One life after the other, each ended at a random point, at the first to the tenth arrival, while new payouts keep
 * coming.
 */
async function underLoad(bench: Bench): Promise<Row> {
  const world = await World.open({ ...bench, name: 'crash-load' })
  const done = new AbortController()
  let crashes = 0
  try {
    const load = (async () => {
      while (!done.signal.aborted) {
        await world.ask(26)
        await delay(500)
      }
    })()
    for (const [i, point] of drawn(LIVES).entries()) {
      bench.signal.throwIfAborted()
      bench.tell(`under load: ${inWords(point)}, time ${1 + (i % 10)}`)
      const proc = await world.start({ crash: { ...point, nth: 1 + (i % 10), how: 'kill' } })
      if (await proc.diesWithin(LIFE_MS)) crashes++
      await proc.kill()
    }
    done.abort()
    await load
    await (await world.start()).up()
    return rowOf(
      { section: SECTION, name: 'one crash after another under load', runs: LIVES, faults: crashes },
      await world.verdict({ signal: bench.signal }),
    )
  } finally {
    done.abort()
    await world.close()
  }
}

export async function* crashChains(bench: Bench): AsyncGenerator<Row> {
  yield await pairs(bench)
  yield await underLoad(bench)
}
