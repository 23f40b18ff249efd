import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import type { ServerProcess } from '../devkit/local/servers/processes/process.ts'
import { end } from '../devkit/local/servers/server.ts'
import { intakeOffsets } from '../src/ledger/sql/kafka/intake-offsets.ts'
import { topicNames } from '../src/messages/topics.ts'
import { connectDatabase, type Database, sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { type Cpu, cpuOf, cpuPer10000 } from './figures/cpu.ts'
import { keepResults } from './figures/results.ts'
import { sum } from './figures/statistics.ts'
import { addYear, analyze } from './testbed/history.ts'
import { IMPLEMENTATIONS } from './testbed/implementations.ts'
import { openLoad } from './testbed/load.ts'
import { merchantsFile } from './testbed/merchants.ts'
import { openObserver } from './testbed/observe.ts'
import { peakMemoryMb } from './testbed/processes.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { MERCHANT_ID, mchIdOf, WARM_UP_PAYOUTS } from './testbed/settings.ts'
import { openTestbed } from './testbed/testbed.ts'

/** What is larger than usual. `history`: rows, of a year. */
type Conditions = {
  queued: number
  history: number
  processes: number
  merchants: number
  latencyMs: number
  tail: boolean
}

const USUAL: Conditions = {
  ...{ queued: 5_000, history: 0, processes: 1, merchants: 1, latencyMs: 20, tail: false },
}

type Measured = {
  name: string
  payoutsPerSecond: number
  /** For 10,000 payouts: to store their commands, behind the others, and for all that follows. */
  intake: Cpu
  sending: Cpu
  /** Of the largest worker process. */
  peakMemoryMb: number
}

const IN_FLIGHT = 256
const COUNT = 5_000
const LOOK_EVERY_MS = 20

const CASES: Record<string, Partial<Conditions>> = {
  usual: {},
  'queued 100,000': { queued: 100_000 },
  'queued 1,000,000': { queued: 1_000_000 },
  '20,000,000 rows of history': { history: 20_000_000 },
  '2 processes': { processes: 2 },
  '4 processes': { processes: 4 },
  '1,000 merchants': { merchants: 1_000 },
  'gateway takes 5 ms': { latencyMs: 5 },
  'gateway takes 200 ms': { latencyMs: 200 },
  'gateway takes 2 s': { latencyMs: 2_000 },
  'tail: 5 % take 300 ms more': { tail: true },
}

const total = (cpu: Cpu) => sum(Object.values(cpu))

const paused = sql<object>`
  update merchants set paused_at = now(), paused_by = 'bench', paused_reason = 'commands are being stored'`
const atFullSpeed = sql<object>`
  update merchants set paused_at = null, paused_by = null, paused_reason = null, warm_up = 9`

await new Command('growth')
  .description('measures what a payout costs where more is queued, stored or running than usual, in one run')
  .option(
    '--cases <list>',
    `of ${Object.keys(CASES).join('; ')}`,
    (list) => list.split('; '),
    Object.keys(CASES),
  )
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action(async ({ cases, dir }: { cases: string[]; dir: string }) => {
    const at = new Date(systemClock.now())
    const runs: Measured[] = []
    await onFreshServers(dir, async (servers) => {
      for (const name of cases) {
        const conditions = { ...USUAL, ...CASES[name] }
        const measured = { name, ...(await measure(`growth-${runs.length + 1}`, conditions, servers)) }
        runs.push(measured)
        console.log(lineOf(measured, runs[0] ?? measured))
      }
    })
    console.log(
      `raw numbers: ${await keepResults('growth', at, { count: COUNT, inFlight: IN_FLIGHT, usual: USUAL, runs })}`,
    )
  })
  .parseAsync()

/** Stores commands of paused merchants, `COUNT` of them behind all others, and then lets `COUNT` payouts be sent. */
async function measure(
  name: string,
  conditions: Conditions,
  servers: BenchServers,
): Promise<Omit<Measured, 'name'>> {
  const { queued, history, processes, merchants, latencyMs, tail } = conditions
  const testbed = await openTestbed(name, servers, { inFlight: IN_FLIGHT, latencyMs, merchants })
  const { config, sandbox, env } = testbed
  await IMPLEMENTATIONS.payoutd.prepare(testbed)
  const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: 'bench' })
  const merchantIds = Array.from({ length: merchants }, (_, i) =>
    i === 0 ? MERCHANT_ID : `${MERCHANT_ID}-${i}`,
  )
  const settings = await merchantsFile(
    servers.data,
    merchantIds.map((id, i) => ({ id, mchId: mchIdOf(i), baseUrl: env.GATEWAY_BASE_URL })),
  )
  const workers: ServerProcess[] = []
  for (let i = 0; i < processes; i++)
    workers.push(
      ...(await IMPLEMENTATIONS.payoutd.start((args, more) => testbed.spawn(args, { ...more, ...settings }))),
    )
  const load = await openLoad(config, tail, servers.log, merchantIds)
  const observer = await openObserver(config, servers.log)
  let published = 0
  /** Publishes commands, and waits until the ledger has them. */
  const take = async (count: number) => {
    await load.backlog(count)
    published += count
    while (await isBehind(db, topicNames(config.topicPrefix).commands, published)) await delay(LOOK_EVERY_MS)
  }
  const cpu = () => cpuOf(workers, sandbox, servers)

  await db.run(atFullSpeed, {})
  await take(WARM_UP_PAYOUTS)
  await observer.results(WARM_UP_PAYOUTS)
  if (history > 0) await addYear(config.databaseUrl, history)
  await analyze(config.databaseUrl)
  await db.run(paused, {})
  await take(queued - COUNT)
  const beforeIntake = cpu()
  await take(COUNT)
  const before = cpu()
  const began = systemClock.monotonic()
  await db.run(atFullSpeed, {})
  await observer.results(WARM_UP_PAYOUTS + COUNT)
  const seconds = (systemClock.monotonic() - began) / 1_000
  const after = cpu()
  const peak = Math.max(...workers.map(({ pid }) => peakMemoryMb(pid) ?? 0))

  for (const worker of workers) await end(worker, 'SIGTERM')
  await load.close()
  await observer.close()
  await db.close()
  await testbed.close()
  return {
    payoutsPerSecond: COUNT / seconds,
    intake: cpuPer10000(beforeIntake, before, COUNT),
    sending: cpuPer10000(before, after, COUNT),
    peakMemoryMb: peak,
  }
}

async function isBehind(db: Database, topic: string, published: number): Promise<boolean> {
  const stored = await db.run(intakeOffsets, { topic })
  return stored.reduce((all, { offset }) => all + Number(offset), 0) < published
}

/** `usual`: the first run, to which the others are compared. */
function lineOf({ name, ...run }: Measured, usual: Measured): string {
  const cpu = (of: 'intake' | 'sending') =>
    `${total(run[of]).toFixed(1)} s (${(total(run[of]) / total(usual[of])).toFixed(2)})`
  return [
    name.padEnd(28),
    `${Math.round(run.payoutsPerSecond)} payouts/s`.padStart(15),
    `CPU per 10,000: intake ${cpu('intake')}, the rest ${cpu('sending')}`,
    `${Math.round(run.peakMemoryMb)} MB`,
  ].join('  ')
}
