import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../../src/platform/running/clock.ts'
import { writeProof } from '../proof.ts'
import { WITHOUT } from '../without/safeguards.ts'
import { Postgres } from './postgres.ts'
import { beginRun, keepSimulation, type SimulationRow } from './results.ts'
import { type Failure, simulate } from './simulate.ts'
import { UNSEEN } from './unseen.ts'
import type { Put } from './world.ts'

type SimulationOptions = { seeds: number; seed: number; without?: true }

const TELL_EVERY_MS = 1_000
/** A shorter run looks for something, and proves nothing worth keeping. */
const WORTH_KEEPING = 500

await new Command('prove:simulation')
  .description(
    `runs payoutd in a simulated world, in as many orders of events as it is given seeds; what ${WORTH_KEEPING} or more ` +
      'came to is kept in prove/results/simulation.json and docs/proof.md',
  )
  .option('--seeds <count>', 'stories', count, WORTH_KEEPING)
  .option('--seed <number>', 'the first, or the only one', count, 1)
  .option('--without', 'without each safeguard in turn: a story must tell, and it is kept which')
  .action(async (options: SimulationOptions) => {
    const postgres = await Postgres.open()
    const right = await (options.without ? proveWithout(options, postgres) : prove(options, postgres))
    await postgres.close()
    if (options.seeds >= WORTH_KEEPING) writeProof()
    if (!right) process.exitCode = 1
  })
  .parseAsync()

/**
 * Goes on after a broken story, and shows the first such story in its shortest form. When interrupted, it finishes
 * the current story and keeps its result.
 */
async function prove(options: SimulationOptions, postgres: Postgres): Promise<boolean> {
  const ended = beginRun(options)
  const failures: Failure[] = []
  const interruption = new AbortController()
  process.once('SIGINT', () => interruption.abort())
  let [seeds, steps, payouts, orders] = [0, 0, 0, 0]
  for (const seed of seedsOf(options, 'payoutd')) {
    if (interruption.signal.aborted) break
    seeds++
    const simulated = await simulate(seed, postgres, { shrink: failures.length === 0 })
    steps += simulated.steps
    payouts += simulated.payouts
    orders += simulated.orders
    const { failure } = simulated
    if (failure === null) continue
    failures.push(failure)
    console.log([...(failures.length === 1 ? ['', ...failure.story, ''] : []), failure.detail].join('\n'))
    console.log(`broken by seed ${seed}: npm run prove:simulation -- --seeds 1 --seed ${seed}`)
  }
  if (seeds >= WORTH_KEEPING) {
    const kept = failures.map(({ seed, invariant, detail }) => ({ seed, invariant, detail }))
    keepSimulation({ whole: { ...ended(), seeds, steps, payouts, failures: kept } })
  }
  const held = failures.length === 0 ? 'every invariant held in each' : `${failures.length} are broken`
  console.log(
    `${seeds} stories, ${steps} steps, ${payouts} commands, ${orders} orders at the gateway: ${held}`,
  )
  return failures.length === 0
}

/** A simulation that does not notice a missing safeguard would prove nothing. */
async function proveWithout(options: SimulationOptions, postgres: Postgres): Promise<boolean> {
  const ended = beginRun(options)
  const told: SimulationRow[] = []
  for (const [without, { about, put }] of Object.entries(WITHOUT)) {
    if (without in UNSEEN) continue
    const failure = await firstFailure(options, postgres, without, put)
    const by = failure ? `told by seed ${failure.seed}: ${failure.invariant}` : 'not told'
    console.log(`without "${without}" (${about}): ${by}`)
    told.push({ without, about, seed: failure?.seed ?? null, broken: failure?.invariant ?? null })
  }
  if (options.seeds >= WORTH_KEEPING) keepSimulation({ without: { ...ended(), told } })
  return told.every(({ seed }) => seed !== null)
}

async function firstFailure(
  options: SimulationOptions,
  postgres: Postgres,
  without: string,
  put: Put,
): Promise<Failure | null> {
  for (const seed of seedsOf(options, without)) {
    const { failure } = await simulate(seed, postgres, { put, shrink: false })
    if (failure) return failure
  }
  return null
}

/** One seed after the other, with a progress report now and then. */
function* seedsOf({ seed, seeds }: SimulationOptions, what: string): Generator<number> {
  const began = systemClock.monotonic()
  let told = began
  for (let done = 0; done < seeds; done++) {
    yield seed + done
    const now = systemClock.monotonic()
    if (now < told + TELL_EVERY_MS) continue
    told = now
    const seconds = Math.round((now - began) / 1000)
    process.stderr.write(`${what}: ${done + 1} of ${seeds} stories, ${seconds} s\r`)
  }
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}
