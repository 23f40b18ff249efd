import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { end } from '../devkit/local/servers/server.ts'
import { connectDatabase, sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { keepResults } from './figures/results.ts'
import { median } from './figures/statistics.ts'
import { implementationOf, programOf } from './testbed/implementations.ts'
import { openLoad } from './testbed/load.ts'
import { openObserver } from './testbed/observe.ts'
import { cpuSeconds } from './testbed/processes.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { openTestbed, type Testbed } from './testbed/testbed.ts'

/** Of a process with all roles and nothing to do. `transactions`: a second, by PostgreSQL's counter; a statement alone is one. */
type Idle = { cpuPercent: number; postgresPercent: number; transactions: number }
/** Seconds from the start of a command to its end. */
type Times = { help: number; show: number }
type Quiet = { implementation: string; idle: Idle; times: Times }

type QuietOptions = { contenders: string[]; seconds: number; repeats: number; dir: string }

/** Enough for every loop to have become rare. */
const SETTLED_AFTER_MS = 75_000

const transactions = sql<object, { count: number }>`
  select (xact_commit + xact_rollback)::float8 as count from pg_stat_database where datname = current_database()`

await new Command('quiet')
  .description('measures a process that has nothing to do, and commands that do little, in turns')
  .option('--contenders <list>', 'payoutd, or payoutd@PATH (as another checkout has it)', names, ['payoutd'])
  .option('--seconds <count>', 'how long a process is watched', Number, 60)
  .option('--repeats <count>', 'how often each command runs', Number, 11)
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action(bench)
  .parseAsync()

async function bench({ contenders, dir, ...settings }: QuietOptions): Promise<void> {
  const at = new Date(systemClock.now())
  const runs: Quiet[] = []
  await onFreshServers(dir, async (servers) => {
    for (const name of contenders) {
      const measured = await measure(name, servers, settings)
      runs.push(measured)
      console.log(lineOf(measured, runs[0] ?? measured))
    }
  })
  console.log(`raw numbers: ${await keepResults('quiet', at, { settings, runs })}`)
}

function names(list: string): string[] {
  return list.split(',')
}

async function measure(
  name: string,
  servers: BenchServers,
  { seconds, repeats }: Pick<QuietOptions, 'seconds' | 'repeats'>,
): Promise<Quiet> {
  const implementation = implementationOf(name)
  const program = programOf(name)
  if (!implementation || !program) throw new Error(`there is no ${name} to measure`)
  const testbed = await openTestbed(`quiet-${name.replace(/@.*$/, '-elsewhere')}`, servers, {
    inFlight: 256,
    latencyMs: 20,
  })
  await implementation.prepare(testbed)
  const load = await openLoad(testbed.config, false, servers.log)
  const observer = await openObserver(testbed.config, servers.log)
  const [payoutId = ''] = (await load.backlog(1)).keys()
  const [worker] = await implementation.start(testbed.spawn)
  if (!worker) throw new Error(`${name} did not start`)
  await observer.results(1)
  await load.close()
  await observer.close()
  const idle = await watch(worker.pid, servers, testbed, seconds)
  await end(worker, 'SIGTERM')
  const times = {
    help: timeOf([program, '--help'], testbed, repeats),
    show: timeOf([program, 'payout', 'show', payoutId], testbed, repeats),
  }
  await testbed.close()
  return { implementation: name, idle, times }
}

async function watch(
  pid: number,
  { stack }: BenchServers,
  { config }: Testbed,
  seconds: number,
): Promise<Idle> {
  const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: 'bench' })
  const used = async () => {
    const [now] = await db.run(transactions, {})
    const postgres = cpuSeconds(stack.pids.postgres ?? 0)
    return { worker: cpuSeconds(pid), postgres, transactions: now?.count ?? Number.NaN }
  }
  await delay(SETTLED_AFTER_MS)
  const before = await used()
  await delay(seconds * 1_000)
  const after = await used()
  await db.close()
  return {
    cpuPercent: (100 * (after.worker - before.worker)) / seconds,
    postgresPercent: (100 * (after.postgres - before.postgres)) / seconds,
    transactions: (after.transactions - before.transactions) / seconds,
  }
}

/** The median of several runs. */
function timeOf(args: string[], { env }: Testbed, repeats: number): number {
  const took = Array.from({ length: repeats }, () => {
    const began = systemClock.monotonic()
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${args.slice(1).join(' ')} ended with ${status}:\n${stderr}`)
    return (systemClock.monotonic() - began) / 1_000
  })
  return median(took)
}

/** `first`: the run to which the others are compared. */
function lineOf({ implementation, idle, times }: Quiet, first: Quiet): string {
  const compared = (value: number, other: number, unit: string, digits = 1) =>
    `${value.toFixed(digits)} ${unit} (${(value / other).toFixed(2)})`
  return [
    implementation,
    `idle: ${compared(idle.cpuPercent, first.idle.cpuPercent, '% of a core')}`,
    `PostgreSQL ${compared(idle.postgresPercent, first.idle.postgresPercent, '%')}`,
    `${compared(idle.transactions, first.idle.transactions, 'transactions/s')}`,
    `--help ${compared(times.help, first.times.help, 's', 2)}`,
    `payout show ${compared(times.show, first.times.show, 's', 2)}`,
  ].join('; ')
}
