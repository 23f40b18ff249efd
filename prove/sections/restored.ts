import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf } from '../matrix.ts'
import { inWords, type Point } from '../points.ts'
import { commandDone, fenced, loweredMaximum, unpublished, WHO } from '../scenes/restored.ts'
import { Backup } from '../world/backup.ts'
import { MIX, World } from '../world/world.ts'

const RECOVER = ['recover', ...WHO, '--rate', '200', '--yes']
/** Send each only once to a gateway that accepts it: a second apply would pay again. */
const ACCOUNTS = [MIX.usual, MIX['never called back'], MIX['called back twice'], MIX.fails]
/** The gateway does not accept its first apply, and would pay a second one. */
const NOT_TAKEN = MIX['not taken, hangs once']

/** The points that only `payoutd recover` passes, in order. */
export const RECOVERY_POINTS: readonly Point['name'][] = [
  'fence merchants',
  'list open payouts',
  'recall published',
  'settle recovered',
  'unfence merchant',
]
const CRASHES = RECOVERY_POINTS.flatMap((name): Point[] => [
  { moment: 'before commit', name },
  { moment: 'after commit', name },
])
/** How many of them come before payoutd serves again. */
const FENCING = 2

type RestoredStory = { name: string; slug: string; untilEnded: boolean; crashes: readonly Point[] }

const STORIES: readonly RestoredStory[] = [
  { name: 'while payouts were under way', slug: 'under-way', untilEnded: false, crashes: [] },
  {
    name: 'once all had ended, with payoutd recover killed at each of its steps',
    slug: 'ended',
    untilEnded: true,
    crashes: CRASHES,
  },
]

const waiting = sql<object, { count: number }>`select count(*)::int as count from payouts where ready`

/**
 * Restores Postgres to a state before most payouts were sent, while Kafka and a gateway that pays an order as often
 * as asked went on. `payoutd recover` fences, queries and resumes.
 */
export async function* restored(bench: Bench): AsyncGenerator<Row> {
  for (const story of bench.quick ? STORIES.slice(0, 1) : STORIES) {
    bench.signal.throwIfAborted()
    const name = `Postgres: restored to an earlier state ${story.name}, at a gateway that pays twice`
    bench.tell(name)
    const world = await World.open({
      ...bench,
      name: `restored-${story.slug}`,
      // So that only a part of the queue is sent.
      eachMerchant: { ratePerSecond: 10 },
      review: 'any',
    })
    try {
      await play(world, bench, story)
      const verdict = await world.verdict({ signal: bench.signal })
      const note = `${verdict.inReview} for a person to decide`
      yield rowOf({ section: 'restored', name, runs: 1, faults: 1 + story.crashes.length, note }, verdict)
    } finally {
      await world.close()
    }
  }
  if (bench.quick) return
  bench.tell(loweredMaximum.name)
  const { faults, ...verdict } = await loweredMaximum.play(bench)
  yield rowOf({ section: 'restored', name: loweredMaximum.name, runs: 1, faults }, verdict)
}

/**
 * The backup contains some payouts that have ended and some that wait, and lacks others. Of those that wait, a
 * person cancelled some and failed some; the restored database does not know that.
 */
async function play(world: World, bench: Bench, { untilEnded, crashes }: RestoredStory): Promise<void> {
  await (await world.start()).up()
  await world.ask(8, ACCOUNTS)
  await world.verdict({ signal: bench.signal })
  await forEach(world, (merchantId) => ['pause', merchantId, ...WHO, '--yes'])
  const cancelled = (await world.ask(20, ACCOUNTS)).slice(0, 4)
  const calledFailed = await world.ask(2, [NOT_TAKEN])
  world.mustEndAs('cancelled', cancelled)
  world.mustEndAs('failed', calledFailed)
  await eventually('22 that wait', async () => (await world.db.run(waiting, {}))[0]?.count === 22)
  await world.killAll()
  const backup = await Backup.of(world.settings.DATABASE_URL as string)
  await (await world.start()).up()
  await decide(world, 'cancel', cancelled)
  await forEach(world, resume)
  const inReview = async (payoutId: string) =>
    (await world.kept()).some((each) => each.payoutId === payoutId && each.state === 'review')
  for (const payoutId of calledFailed) await eventually('one to decide about', () => inReview(payoutId))
  await decide(world, 'resolve', calledFailed, ['--failed', '--attempt', '1'])
  await eventually('all published', async () => (await world.db.run(unpublished, {}))[0]?.count === 0)
  await world.ask(20, ACCOUNTS)
  if (untilEnded) await world.verdict({ signal: bench.signal })
  else await eventually('a part sent', async () => (await world.gateway.orders()).length >= 30)
  await world.killAll()
  await backup.restore()
  await forEach(world, resume)
  await world.ask(6, ACCOUNTS)
  for (const crash of crashes.slice(0, FENCING)) await killed(world, crash)
  const recovering = crashes.length > 0 ? null : commandDone(world, RECOVER)
  await eventually('the fence', async () => (await world.db.run(fenced, {})).length > 0)
  await (await world.start()).up()
  await recovering
  for (const crash of crashes.slice(FENCING)) await killed(world, crash)
  if (crashes.length > 0) await commandDone(world, RECOVER)
}

/** A person's decision about each of these payouts. */
async function decide(
  world: World,
  verb: string,
  payoutIds: readonly string[],
  how: readonly string[] = [],
): Promise<void> {
  for (const { merchantId, payoutId } of world.asked.filter((each) => payoutIds.includes(each.payoutId)))
    await commandDone(world, ['payout', verb, payoutId, '--merchant', merchantId, ...how, ...WHO, '--yes'])
}

const resume = (merchantId: string) => ['resume', merchantId, ...WHO, '--yes']

async function forEach(world: World, argsFor: (merchantId: string) => readonly string[]): Promise<void> {
  for (const { merchantId } of world.merchants) await commandDone(world, argsFor(merchantId))
}

async function killed(world: World, crash: Point): Promise<void> {
  const { exit, proc } = await world.command(RECOVER, { ...crash, nth: 1, how: 'kill' })
  if (exit !== 'SIGKILL') throw new Error(`${inWords(crash)} was not reached: ${exit}, ${proc.tail()}`)
}
