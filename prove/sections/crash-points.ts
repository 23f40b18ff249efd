import { setTimeout as delay } from 'node:timers/promises'
import { sql } from '../../src/platform/postgres/postgres.ts'
import type { Crash } from '../crash.ts'
import type { Bench, Row } from '../matrix.ts'
import { rowOf } from '../matrix.ts'
import { allPoints, inWords, type Point, requireTried } from '../points.ts'
import type { Proc } from '../world/proc.ts'
import { World } from '../world/world.ts'
import { COMMAND_POINTS } from './commands.ts'
import { RECOVERY_POINTS } from './restored.ts'

const SECTION = 'crash points'
/** How long a process may take to reach its crash point before the run counts as missed. */
const REACH_WITHIN_MS = 20_000
const PER_RUN = 13

/**
 * The points that a running payoutd passes while it pays, with the role; null: any role. Commands or payins pass
 * the rest.
 */
const ROLE_OF: Readonly<Partial<Record<Point['name'], string | null>>> = {
  'prove keys': null,
  'keep history': null,
  'sweep early cancels': null,
  'sweep kept callbacks': null,
  'forget lag': null,
  'take in commands': 'intake',
  claim: 'dispatch',
  'record apply answers': 'dispatch',
  'keep balance': 'dispatch',
  apply: 'dispatch',
  balance: 'dispatch',
  'take due payouts': 'outcomes',
  'settle payouts': 'outcomes',
  'report lag': 'outcomes',
  payoutQuery: 'outcomes',
  'forget published': 'relay',
  'add shards': 'relay',
  'take shards': 'relay',
  relay: 'relay',
}
export const SERVE = Object.keys(ROLE_OF) as Point['name'][]

/** All points that the prover's sections reach. */
export const TRIED = [...SERVE, ...COMMAND_POINTS, ...RECOVERY_POINTS]

/** Reached only while callbacks wait for their commit. */
const LAG = 'report lag'

/** The points with the most at stake. */
const QUICK = new Set([
  ...['take in commands', 'claim', 'settle payouts'].map((name) => `after commit ${name}`),
  'under way apply',
  'after publish relay',
])

const ROLES = ['intake', 'dispatch', 'outcomes', 'relay']

/**
 * For every point: SIGKILL there, start again, run to the end, check. Once with all roles in one process, once with
 * a process per role, of which the one that passes the point dies.
 */
export async function* crashPoints(bench: Bench): AsyncGenerator<Row> {
  const all = allPoints()
  requireTried(TRIED, all)
  const points = all.filter((each) => (bench.quick ? QUICK.has(inWords(each)) : SERVE.includes(each.name)))
  yield* together(bench, points)
  if (!bench.quick) yield* apart(bench, points)
}

async function* together(bench: Bench, points: readonly Point[]): AsyncGenerator<Row> {
  const world = await World.open({ ...bench, name: 'crash-together' })
  const missed: string[] = []
  let proc: Proc | undefined
  try {
    for (const [i, point] of points.entries()) {
      bench.signal.throwIfAborted()
      bench.tell(`${inWords(point)} (${i + 1} of ${points.length})`)
      await world.ask(PER_RUN)
      await proc?.kill()
      proc = await world.start({ crash: { ...point, nth: 1, how: 'kill' } })
      if (!(await diesAt(point, proc, world))) missed.push(inWords(point))
      await proc.kill()
      if (!bench.quick) {
        proc = await world.start()
        await proc.up()
        await world.verdict()
      }
    }
    proc = await world.start()
    await proc.up()
    const verdict = await world.verdict()
    const runs = points.length
    const row = rowOf(
      { section: SECTION, name: 'all roles in one process', runs, faults: runs - missed.length },
      verdict,
    )
    yield noteMissed(row, missed)
  } finally {
    await world.close()
  }
}

async function diesAt({ name }: Point, proc: Proc, world: World): Promise<boolean> {
  const dies = proc.diesWithin(REACH_WITHIN_MS)
  if (name === LAG) await holdUpCommits(world, dies)
  return dies
}

const lockHistory = sql<object>`lock table history in share mode`

/** Every transaction that changes a payout waits, repeatedly. */
async function holdUpCommits(world: World, until: Promise<unknown>): Promise<void> {
  let isOver = false
  const over = until.then(() => {
    isOver = true
  })
  while (!isOver) {
    await world.db.transaction('test', async (tx) => {
      await tx.run(lockHistory, {})
      await delay(300)
    })
    await Promise.race([over, delay(100)])
  }
}

const noteMissed = (row: Row, missed: readonly string[]): Row =>
  missed.length === 0
    ? row
    : {
        ...row,
        other: row.other + missed.length,
        note: `not reached: ${missed.join(', ')}`,
        discrepancies: [...row.discrepancies, ...missed.map((each) => `no run reached ${each}`)],
      }

async function* apart(bench: Bench, points: readonly Point[]): AsyncGenerator<Row> {
  const world = await World.open({ ...bench, name: 'crash-apart' })
  const reached = new Set<string>()
  let crashes = 0
  try {
    const alive = new Map<string, Proc>()
    for (const role of ROLES) alive.set(role, await world.start({ roles: role }))
    for (const role of ROLES) {
      const passed = points.filter(({ name }) => (ROLE_OF[name] ?? role) === role)
      for (const [i, point] of passed.entries()) {
        bench.signal.throwIfAborted()
        bench.tell(`${role}: ${inWords(point)} (${i + 1} of ${passed.length})`)
        await world.ask(PER_RUN)
        await alive.get(role)?.kill()
        const crash: Crash = { ...point, nth: 1, how: 'kill' }
        const proc = await world.start({ roles: role, crash })
        if (await diesAt(point, proc, world)) {
          crashes++
          reached.add(inWords(point))
        }
        await proc.kill()
        alive.set(role, await world.start({ roles: role }))
      }
      await world.verdict()
    }
    const verdict = await world.verdict()
    const missed = points.map(inWords).filter((each) => !reached.has(each))
    const row = rowOf(
      { section: SECTION, name: 'a process for each role', runs: crashes, faults: crashes },
      verdict,
    )
    yield noteMissed(row, missed)
  } finally {
    await world.close()
  }
}
