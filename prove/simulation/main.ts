import { mkdirSync, writeFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../../src/platform/clock.ts'
import { WITHOUT } from '../without/safeguards.ts'
import { Postgres } from './postgres.ts'
import { type Failure, simulate } from './simulate.ts'
import type { Put } from './world.ts'

type Options = { seeds: number; seed: number; without?: true }

const TELL_EVERY_MS = 1_000
const RESULTS = new URL('../results/simulation/', import.meta.url)

await new Command('prove:simulation')
  .description('runs payoutd in a simulated world, in as many orders of events as it is given seeds')
  .option('--seeds <count>', 'stories', count, 500)
  .option('--seed <number>', 'the first, or the only one', count, 1)
  .option('--without', 'without each safeguard in turn: a story must tell, and it is kept which')
  .action(async (options: Options) => {
    const postgres = await Postgres.open()
    const right = await (options.without ? proveWithout(options, postgres) : prove(options, postgres))
    await postgres.close()
    if (!right) process.exitCode = 1
  })
  .parseAsync()

async function prove(options: Options, postgres: Postgres): Promise<boolean> {
  const failure = await firstFailure(options, postgres, 'payoutd', {})
  if (!failure) {
    console.log(`${options.seeds} stories: every invariant held in each`)
    return true
  }
  console.log([...failure.story, '', failure.detail].join('\n'))
  console.log(`broken by seed ${failure.seed}: npm run prove:simulation -- --seeds 1 --seed ${failure.seed}`)
  return false
}

/** A simulation that could not tell that a safeguard is missing would prove nothing. */
async function proveWithout(options: Options, postgres: Postgres): Promise<boolean> {
  const told: { without: string; about: string; seed: number | null; broken: string | null }[] = []
  for (const [without, { about, put }] of Object.entries(WITHOUT)) {
    const failure = await firstFailure(options, postgres, without, { put, shrink: false })
    const by = failure ? `told by seed ${failure.seed}: ${failure.invariant}` : 'not told'
    console.log(`without "${without}" (${about}): ${by}`)
    told.push({ without, about, seed: failure?.seed ?? null, broken: failure?.invariant ?? null })
  }
  const { seed: from, seeds } = options
  const ranAt = new Date(systemClock.now()).toISOString()
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(
    new URL('without.json', RESULTS),
    `${JSON.stringify({ ranAt, node: process.version, from, seeds, told }, null, 2)}\n`,
  )
  return told.every(({ seed }) => seed !== null)
}

async function firstFailure(
  { seed, seeds }: Options,
  postgres: Postgres,
  what: string,
  how: { put?: Put; shrink?: boolean },
): Promise<Failure | null> {
  const began = systemClock.monotonic()
  let told = began
  for (let done = 0; done < seeds; done++) {
    const failure = await simulate(seed + done, postgres, how)
    if (failure) return failure
    const now = systemClock.monotonic()
    if (now < told + TELL_EVERY_MS) continue
    told = now
    const seconds = Math.round((now - began) / 1000)
    process.stderr.write(`${what}: ${done + 1} of ${seeds} stories, ${seconds} s\r`)
  }
  return null
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}
