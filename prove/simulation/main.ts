import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../../src/platform/clock.ts'
import { Postgres } from './postgres.ts'
import { simulate } from './simulate.ts'

type Options = { seeds: number; seed?: number }

const TELL_EVERY_MS = 1_000

await new Command('prove:simulation')
  .description('runs payoutd in a simulated world, in as many orders of events as it is given seeds')
  .option('--seeds <count>', 'stories', count, 500)
  .option('--seed <number>', 'the first, or the only one', count)
  .action(prove)
  .parseAsync()

async function prove({ seed = 1, ...options }: Options): Promise<void> {
  const began = systemClock.monotonic()
  let told = began
  const postgres = await Postgres.open()
  const seconds = () => ((systemClock.monotonic() - began) / 1000).toFixed(1)
  for (let done = 0; done < options.seeds; done++) {
    const failure = await simulate(seed + done, postgres)
    if (failure) {
      process.stderr.write('\r')
      console.log([...failure.story, '', failure.detail].join('\n'))
      console.log(
        `broken by seed ${failure.seed}: npm run prove:simulation -- --seeds 1 --seed ${failure.seed}`,
      )
      process.exitCode = 1
      break
    }
    if (systemClock.monotonic() < told + TELL_EVERY_MS) continue
    told = systemClock.monotonic()
    process.stderr.write(`\r${done + 1} of ${options.seeds} stories, ${seconds()} s`)
  }
  await postgres.close()
  if (process.exitCode !== 1)
    console.log(`\r${options.seeds} stories in ${seconds()} s: every invariant held in each`)
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}
