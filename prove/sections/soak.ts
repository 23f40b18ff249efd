import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Random } from '../../devkit/local/example/random.ts'
import { sql } from '../../src/platform/postgres/postgres.ts'
import { eventually } from '../../src/platform/running/eventually.fixture.ts'
import { type Bench, type Row, rowOf, withWrong } from '../matrix.ts'
import { makeFaults, type Soaked } from '../soak/soak-faults.ts'
import { growing, inWords, type Sample, takeSample, trendsOf } from '../soak/soak-samples.ts'
import { furtherMerchants } from '../world/merchants.ts'
import { freePorts } from '../world/proc.ts'
import { setFaults } from '../world/sandbox-faults.ts'
import { openThroughWires } from '../world/wires.ts'
import { MIX, type Verdict, World } from '../world/world.ts'

const SECTION = 'soak'
const USUAL_MINUTES = 60
const MINUTE_MS = 60_000
const SEED = 20_261_121

/** How much the checker gets at once: the prover keeps all evidence about it in memory. */
const LAP_MS = 3 * MINUTE_MS
const SETTLED_WITHIN_MS = 120_000

const TOP_SPEED_MS = 20_000
const WARM = 1_000
/** More than payoutd can process between two looks. */
const BACKLOG = 4_000

/** A gateway that costs next to nothing, has money for all, and retries what it could not deliver. */
const FAST = {
  sandbox: {
    balance: 10n ** 14n,
    settleMs: 50,
    latencyMs: 5,
    callbackRetries: [1, 1, 2, 2, 5, 5, 10, 10, 20, 20],
  },
  // A busy process takes a while from a claim to the send.
  dialect: {
    leaseMs: 10_000,
    absence: { graceMs: 10_500, confirmations: 2 },
    sendTimeoutMs: { connect: 500, headers: 1_500, body: 500 },
  },
}

/** One in ten is of the kinds that go wrong; a "failed" after "paid" comes only after the "paid" was acknowledged. */
const ODD = [...Object.values(MIX), '9999000012', '9999000014']
const ACCOUNTS = ODD.flatMap((odd) => [...Array<string>(9).fill(MIX.usual), odd])

/** The gateway's constant faults, for a tenth of one merchant's traffic. */
const misbehaving = (mchId: string | undefined): object[] => [
  { fault: 'hang', operation: 'apply', percent: 10, mchId },
  { fault: 'wrongly-signed', operation: 'queryPayout', percent: 10, mchId },
  { fault: 'contradictory-callback', operation: 'payoutCallback', percent: 10, mchId },
]

/** One payout in this many is of the two kinds that the gateway never accepts. */
const ONE_NEVER_TAKEN = 75
/** The most payouts that one fault leaves to a person: what a merchant has in flight. */
const ON_THEIR_WAY = 64

/**
 * Runs two merchants for long at half the top speed, one of them with a misbehaving gateway, with one fault after
 * the other; then checks everything, and whether payoutd's resource use stayed the same. The quick form leaves it
 * out.
 */
export async function* soak(bench: Bench): AsyncGenerator<Row> {
  if (bench.quick) return
  bench.tell('top speed')
  const perSecond = await topSpeed(bench)
  yield await soakAt(Math.max(1, Math.floor(perSecond / 2)), perSecond, bench)
}

/** Payouts that end per second when there is always more to do and nothing goes wrong. */
async function topSpeed(bench: Bench): Promise<number> {
  const world = await World.open({ ...bench, name: 'soak-top-speed', ...FAST })
  try {
    await (await world.start()).up()
    await world.start({ roles: 'intake,dispatch,relay' })
    const done = async () => Number((await world.db.run(ended, {}))[0]?.count ?? 0)
    const keepBusy = async () => {
      const missing = BACKLOG - (world.asked.length - (await done()))
      if (missing > 0) await world.ask(missing, [MIX.usual])
    }
    await eventually('a warm payoutd', async () => {
      await keepBusy()
      return (await done()) >= WARM
    })
    const [began, before] = [performance.now(), await done()]
    while (performance.now() < began + TOP_SPEED_MS) {
      bench.signal.throwIfAborted()
      await keepBusy()
      await delay(200)
    }
    return ((await done()) - before) / ((performance.now() - began) / 1000)
  } finally {
    await world.close()
  }
}

const ended = sql<
  object,
  { count: bigint }
>`select count(*) as count from payouts where state in ('paid', 'failed')`

async function soakAt(perSecond: number, topSpeed: number, bench: Bench): Promise<Row> {
  const minutes = bench.soakMinutes ?? USUAL_MINUTES
  const wholeMs = minutes * MINUTE_MS
  const laps = Math.ceil(wholeMs / LAP_MS)
  const merchants = furtherMerchants(2 * laps)
  const { world, wires, close } = await openThroughWires(bench, { name: 'soak', review: 'any', ...FAST })
  try {
    await world.addMerchants(merchants)
    const soaked = await begin(world, wires)
    const counts = { payouts: 0, troubles: 0 }
    const samples: Sample[] = []
    const began = performance.now()
    const sampling = every(Math.min(MINUTE_MS, wholeMs / 20), async () => {
      const sample = await takeSample(world, soaked.procs, bench.log)
      samples.push({ atMs: Math.round(performance.now() - began), ...counts, ...sample })
    })
    const verdicts: Verdict[] = []
    try {
      for (let i = 0; i < laps; i++) {
        bench.tell(`lap ${i + 1} of ${laps}, ${perSecond} payouts a second`)
        const pair = merchants.slice(2 * i, 2 * i + 2)
        world.turnTo(pair)
        soaked.standing = misbehaving(pair[1]?.mchId)
        await setFaults(world, soaked.standing)
        verdicts.push(
          await lap(soaked, perSecond, Math.min(LAP_MS, wholeMs - i * LAP_MS), counts, bench.signal),
        )
        await setFaults(world, [])
      }
    } finally {
      await sampling.stop()
    }
    writeFileSync(path.join(bench.dir, 'soak-samples.json'), `${JSON.stringify(samples, null, 2)}\n`)
    const trends = trendsOf(samples, Object.keys(soaked.procs))
    const { tablesMb, liveRows, deadRows, lag } = samples.at(-1) as Sample
    const inReview = verdicts.reduce((sum, verdict) => sum + verdict.inReview, 0)
    const note =
      `${minutes} minutes at ${perSecond}/s, half of ${Math.round(topSpeed)}/s; seed ${SEED}; ` +
      `the least in the first quarter → in the last: ${inWords(trends)}; at the end tables ${tablesMb} MB, ` +
      `${deadRows} dead rows beside ${liveRows}, Kafka lag ${lag}`
    const row = rowOf(
      {
        ...{ section: SECTION, name: 'random faults at half the top speed' },
        ...{ runs: laps, faults: counts.troubles, note },
      },
      {
        ...{ payouts: counts.payouts, inReview, paysTwice: true },
        discrepancies: verdicts.flatMap(({ discrepancies }) => discrepancies),
      },
    )
    const died = soaked.procs.steady.isGone ? [`died: ${soaked.procs.steady.name} ended by itself`] : []
    const explained = counts.payouts / ONE_NEVER_TAKEN + counts.troubles * ON_THEIR_WAY
    const undecided = inReview > explained ? [`${inReview} of ${counts.payouts} wait for a person`] : []
    return withWrong(row, [...growing(trends), ...died, ...undecided])
  } finally {
    await close()
  }
}

/** This many ms of load and faults, then neither until everything has ended, and the result. */
async function lap(
  soaked: Soaked,
  perSecond: number,
  ms: number,
  counts: { payouts: number; troubles: number },
  signal: AbortSignal,
): Promise<Verdict> {
  const { world } = soaked
  const over = new AbortController()
  const troubles = makeFaults(soaked, over.signal, () => counts.troubles++)
  const before = counts.payouts
  await load(world, perSecond, ms, signal, () => {
    counts.payouts = before + world.asked.length
  }).finally(() => over.abort())
  await troubles
  return world.verdict({ signal, patienceMs: SETTLED_WITHIN_MS })
}

/** Two processes with all roles; callbacks go to the steady one. */
async function begin(world: World, wires: Soaked['wires']): Promise<Soaked> {
  const { settings } = world
  settings.PUBLIC_URL = `http://127.0.0.1:${settings.PUBLIC_PORT}`
  const steady = await world.start()
  await steady.up()
  settings.PUBLIC_PORT = String((await freePorts(1))[0])
  const procs = { steady, mortal: await world.start() }
  const revive: Soaked['revive'] = async (crash) => {
    procs.mortal = await world.start(crash ? { crash } : {})
  }
  return { world, wires, procs, standing: [], revive, random: new Random(SEED) }
}

/** Requests this many payouts a second for this many ms, whatever becomes of them. */
async function load(
  world: World,
  perSecond: number,
  ms: number,
  signal: AbortSignal,
  onAsked: () => void,
): Promise<void> {
  const began = performance.now()
  while (performance.now() < began + ms) {
    signal.throwIfAborted()
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond)
    if (due > world.asked.length) await world.ask(due - world.asked.length, ACCOUNTS)
    onAsked()
    await delay(250)
  }
}

/** Repeats the work with pauses of this many ms, until it is stopped. */
function every(ms: number, work: () => Promise<void>): { stop: () => Promise<void> } {
  const over = new AbortController()
  const going = (async () => {
    while (!over.signal.aborted) {
      await delay(ms, undefined, { signal: over.signal }).catch(() => undefined)
      await work()
    }
  })()
  return {
    stop: async () => {
      over.abort()
      await going
    },
  }
}
