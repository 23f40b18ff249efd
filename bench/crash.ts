import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { end } from '../devkit/local/servers/server.ts'
import { connectDatabase, type Database, sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { keepResults } from './figures/results.ts'
import { median } from './figures/statistics.ts'
import { IMPLEMENTATIONS } from './testbed/implementations.ts'
import { openLoad } from './testbed/load.ts'
import { compareWithBooks, openObserver } from './testbed/observe.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { openTestbed } from './testbed/testbed.ts'

const IN_FLIGHT = 256
const COUNT = 6_000
/** The process is killed once so many results are there. */
const KILL_AFTER = 2_000
const LOOK_EVERY_MS = 50

/** What a kill left. `seconds`: from the start of the next process until nothing of it was in doubt. */
type Crash = { inDoubt: number; seconds: number; inReview: number }

const doubtful = sql<object, { ids: string[] }>`
  select coalesce(array_agg(payout_id), '{}') as ids from payouts where in_doubt`
const left = sql<{ ids: string[] }, { inDoubt: number; inReview: number }>`
  select count(*) filter (where in_doubt)::int as in_doubt, count(*) filter (where in_review)::int as in_review
  from payouts where payout_id = any(${'ids'}::text[])`

await new Command('crash')
  .description(
    'kills payoutd under full load, and measures how many payouts are in doubt then, and for how long',
  )
  .option('--rounds <count>', 'how often', Number, 3)
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action(async ({ rounds, dir }: { rounds: number; dir: string }) => {
    const at = new Date(systemClock.now())
    const runs: Crash[] = []
    await onFreshServers(dir, async (servers) => {
      for (let round = 1; round <= rounds; round++) {
        const crash = await measure(`crash-${round}`, servers)
        runs.push(crash)
        console.log(
          `${crash.inDoubt} in doubt, ${crash.inReview} of them left to a person, the others clear after ${crash.seconds.toFixed(1)} s`,
        )
      }
    })
    const file = await keepResults('crash', at, {
      inFlight: IN_FLIGHT,
      count: COUNT,
      killAfter: KILL_AFTER,
      runs,
    })
    console.log(
      `median ${median(runs.map(({ inDoubt }) => inDoubt))} of ${IN_FLIGHT} in flight; raw numbers: ${file}`,
    )
  })
  .parseAsync()

async function measure(name: string, servers: BenchServers): Promise<Crash> {
  const testbed = await openTestbed(name, servers, { inFlight: IN_FLIGHT, latencyMs: 20 })
  const { config, sandbox, stateFile, spawn } = testbed
  await IMPLEMENTATIONS.payoutd.prepare(testbed)
  const db = connectDatabase({ url: config.databaseUrl, connections: 1, applicationName: 'bench' })
  const load = await openLoad(config, false, servers.log)
  const observer = await openObserver(config, servers.log)
  await load.backlog(COUNT)

  const [killed] = await IMPLEMENTATIONS.payoutd.start(spawn)
  await observer.results(KILL_AFTER)
  if (killed) await end(killed, 'SIGKILL')
  const [{ ids }] = (await db.run(doubtful, {})) as [{ ids: string[] }]
  const began = systemClock.monotonic()
  const [worker] = await IMPLEMENTATIONS.payoutd.start(spawn)
  const inReview = await cleared(db, ids)
  const seconds = (systemClock.monotonic() - began) / 1_000
  const { results } = await observer.readResults(COUNT)

  if (worker) await end(worker, 'SIGTERM')
  await end(sandbox, 'SIGTERM')
  compareWithBooks(results, await observer.readEvents(), stateFile)
  await load.close()
  await observer.close()
  await db.close()
  await testbed.close()
  return { inDoubt: ids.length, seconds, inReview }
}

/** Waits until none of these payouts is in doubt; returns how many of them wait for a person. */
async function cleared(db: Database, ids: string[]): Promise<number> {
  for (;;) {
    const [now] = await db.run(left, { ids })
    if (now?.inDoubt === 0) return now.inReview
    await delay(LOOK_EVERY_MS)
  }
}
