import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../src/platform/running/clock.ts'
import { report } from './figures/report.ts'
import { keepResults } from './figures/results.ts'
import { type Measurement, run } from './run.ts'
import { IMPLEMENTATIONS, implementationOf } from './testbed/implementations.ts'
import { onFreshServers } from './testbed/servers.ts'
import { type BenchSettings, SETTLE_MS, STEADY, WARM_UP_PAYOUTS } from './testbed/settings.ts'

type BenchOptions = {
  payouts: number
  rounds: number
  inFlight: number
  latency: number
  tail: boolean
  contenders: string[]
  dir: string
}

const CONTENDERS = `of ${Object.keys(IMPLEMENTATIONS).join(', ')}, payoutd@PATH (as another checkout has it)`

await new Command('bench')
  .description('measures payoutd beside the naive way, in turns, on the embedded stack')
  .option('--payouts <count>', 'commands in the backlog of each run', count, 20_000)
  .option('--rounds <count>', 'runs of each contender', count, 3)
  .option('--in-flight <count>', 'apply calls under way at once', count, 256)
  .option('--latency <ms>', 'how long the gateway takes for an answer', count, 20)
  .option('--tail', '5 % of the applies take 300 ms more', false)
  .option('--contenders <list>', CONTENDERS, names, ['payoutd', 'naive'])
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action(bench)
  .parseAsync()

async function bench({ contenders, latency, dir, ...rest }: BenchOptions): Promise<void> {
  const settings: BenchSettings = { ...rest, latencyMs: latency }
  const at = new Date(systemClock.now())
  const runs: Measurement[] = []
  await onFreshServers(dir, async (servers) => {
    for (const each of contenders) await run(each, 0, servers, { ...settings, payouts: WARM_UP_PAYOUTS })
    for (let round = 1; round <= settings.rounds; round++) {
      for (const each of contenders) {
        const measured = await run(each, round, servers, settings)
        console.log(`round ${round}, ${each}: ${Math.round(measured.payoutsPerSecond)} payouts/s`)
        runs.push(measured)
      }
    }
  })
  const conditions = { ...settings, settleMs: SETTLE_MS, steady: STEADY }
  const file = await keepResults('bench', at, { settings: conditions, runs })
  console.log(`\n${report(runs)}\n\nraw numbers: ${file}`)
}

function count(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.')
  return Number(text)
}

function names(list: string): string[] {
  const wanted = list.split(',')
  const wrong = wanted.filter((name) => !implementationOf(name))
  if (wrong.length > 0) throw new InvalidArgumentError(`There is no ${wrong.join(', ')}.`)
  return wanted
}
