import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { Command } from 'commander'
import { payoutdNode } from '../devkit/local/demo/payoutd-process.ts'
import { end } from '../devkit/local/servers/server.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { keepResults } from './figures/results.ts'
import { sum } from './figures/statistics.ts'
import { type Measurement, run } from './run.ts'
import { openLoad } from './testbed/load.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { WARM_UP_PAYOUTS } from './testbed/settings.ts'
import { openTestbed } from './testbed/testbed.ts'

const PROCESSES = ['worker', 'postgres', 'kafka', 'sandbox'] as const

type Floor = { floor: string; micros: Record<string, number> }
type FloorsOptions = { payouts: number; dir: string }

await new Command('floors')
  .description(
    'measures what the parts of a payout cost at least, each alone, and payoutd as a multiple of their sum',
  )
  .option('--payouts <count>', 'how many', Number, 10_000)
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action((options: FloorsOptions) => onFreshServers(options.dir, (servers) => bench(options, servers)))
  .parseAsync()

async function bench({ payouts }: FloorsOptions, servers: BenchServers): Promise<void> {
  const at = new Date(systemClock.now())
  const floors = await measureFloors(payouts, servers)
  const settings = { payouts: WARM_UP_PAYOUTS, rounds: 1, inFlight: 256, latencyMs: 0, tail: false }
  await run('payoutd', 0, servers, settings)
  const ours = await run('payoutd', 1, servers, { ...settings, payouts })
  const least = sum(floors.map(({ micros }) => sum(Object.values(micros))))
  const times = (100 * sum(Object.values(ours.cpu))) / least
  const file = await keepResults('floors', at, { payouts, floors, sum: least, payoutd: ours, times })
  console.log(
    `\n${table(floors, ours)}\n\npayoutd takes ${times.toFixed(2)} times their sum; raw numbers: ${file}`,
  )
}

async function measureFloors(payouts: number, servers: BenchServers): Promise<Floor[]> {
  const { stack, logs } = servers
  const testbed = await openTestbed('floors', servers, { inFlight: 256, latencyMs: 0 })
  const load = await openLoad(testbed.config, false, servers.log)
  await load.backlog(WARM_UP_PAYOUTS + payouts)
  const pids = { postgres: stack.pids.postgres, kafka: stack.pids.kafka, sandbox: testbed.sandbox.pid }
  const program = path.join(import.meta.dirname, 'contenders', 'floors.ts')
  const { process } = await testbed.spawn([...payoutdNode, program], {
    FLOORS_PAYOUTS: String(payouts),
    FLOORS_PIDS: JSON.stringify(pids),
  })
  await end(process, 'SIGTERM')
  await load.close()
  await testbed.close()
  const lines = (await readFile(path.join(logs, 'floors-1.log'), 'utf8')).split('\n')
  return lines.filter((line) => line.startsWith('{"floor"')).map((line) => JSON.parse(line) as Floor)
}

function table(floors: readonly Floor[], { cpu }: Measurement): string {
  const rows = floors.map(({ floor, micros }) => row(floor, micros))
  const sums = Object.fromEntries(
    PROCESSES.map((name) => [name, sum(floors.map(({ micros }) => micros[name] ?? 0))]),
  )
  const ours = Object.fromEntries(PROCESSES.map((name) => [name, cpu[name] * 100]))
  const heads = ['CPU µs a payout'.padEnd(30), ...[...PROCESSES, 'all'].map((name) => name.padStart(9))]
  return [heads.join(' '), ...rows, row('their sum', sums), row('payoutd', ours)].join('\n')
}

function row(name: string, micros: Record<string, number>): string {
  const figures = [...PROCESSES.map((process) => micros[process] ?? 0), sum(Object.values(micros))]
  return [name.padEnd(30), ...figures.map((each) => each.toFixed(0).padStart(9))].join(' ')
}
