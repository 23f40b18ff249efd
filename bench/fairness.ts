import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { end } from '../devkit/local/servers/server.ts'
import { connectDatabase, sql } from '../src/platform/postgres/postgres.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { keepResults } from './figures/results.ts'
import { percentile } from './figures/statistics.ts'
import { IMPLEMENTATIONS } from './testbed/implementations.ts'
import { openLoad } from './testbed/load.ts'
import { merchantsFile } from './testbed/merchants.ts'
import { openObserver } from './testbed/observe.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { GATEWAY, MERCHANT_ID, mchIdOf } from './testbed/settings.ts'
import { openTestbed, startSandbox } from './testbed/testbed.ts'

/** How many times longer another merchant may take beside the hanging one than alone. */
const LIMIT = 1.5
const HANGING = 'hanging'
const IN_FLIGHT = 256

const states = sql<object, { state: string; count: number }>`
  select state, count(*)::int as count from payouts where merchant_id = 'hanging' group by state`
const openSome = sql<{ count: number }>`
  update payouts
  set state = 'unknown', attempt = 1, ready = false, unknown_since = now(), due_at = now()
  where (merchant_id, payout_id) in
    (select merchant_id, payout_id from payouts where merchant_id = 'hanging' and ready limit ${'count'})`
/** The hanging gateway does not report its balance; payoutd keeps trusting the previous one. */
const letSend = sql<object>`
  update merchants set available = 1000000000000000, snapshot_at = now(), warm_up = 9, paused_at = null, paused_by = null,
    paused_reason = null
  where merchant_id not like 'short-%'`
const holdBack = sql<object>`
  update merchants set paused_at = now(), paused_by = 'bench', paused_reason = 'the backlog is taken in'
  where merchant_id = 'hanging'`

type FairnessOptions = {
  backlog: number
  open: number
  short: number
  seconds: number
  perSecond: number
  dir: string
}

await new Command('fairness')
  .description(
    'measures one merchant alone, beside another whose gateway hangs and whose backlog is long, and beside many whose balance is short',
  )
  .option('--backlog <count>', 'queued payouts of the hanging merchant', Number, 100_000)
  .option('--open <count>', 'payouts of its that are unknown and asked about', Number, 5_000)
  .option('--short <count>', 'merchants whose balance is short, with two payouts each', Number, 500)
  .option('--seconds <count>', 'how long each is measured', Number, 25)
  .option('--per-second <count>', 'payouts of the other merchant', Number, 10)
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action((options: FairnessOptions) => onFreshServers(options.dir, (servers) => bench(options, servers)))
  .parseAsync()

async function bench(options: FairnessOptions, servers: BenchServers): Promise<void> {
  const at = new Date(systemClock.now())
  const alone = await measure('alone', { ...options, backlog: 0, open: 0, short: 0 }, servers)
  const beside = await measure('beside', { ...options, short: 0 }, servers)
  const besideShort = await measure('short', { ...options, backlog: 0, open: 0 }, servers)
  const [ratio, ratioShort] = [beside.p99 / alone.p99, besideShort.p99 / alone.p99]
  const { dir: _, ...settings } = options
  const file = await keepResults('fairness', at, {
    settings: { ...settings, inFlight: IN_FLIGHT },
    ...{ alone, beside, besideShort, ratio, ratioShort },
  })
  console.log(
    `p99 from command to result: ${alone.p99} ms alone, ${beside.p99} ms beside the hanging merchant`,
  )
  console.log(`${ratio.toFixed(2)} times (limit ${LIMIT})`)
  console.log(
    `${besideShort.p99} ms beside ${options.short} merchants whose balance is short: ${ratioShort.toFixed(2)} times`,
  )
  console.log(`raw numbers: ${file}`)
  if (Math.max(ratio, ratioShort) > LIMIT) process.exitCode = 1
}

/** From the command to its result on Kafka, in ms: p50, p99, and each payout. */
async function measure(
  name: string,
  { backlog, open, short, seconds, perSecond }: FairnessOptions,
  servers: BenchServers,
) {
  const testbed = await openTestbed(`fairness-${name}`, servers, { inFlight: IN_FLIGHT, latencyMs: 20 })
  const gateway = await hangingGateway()
  const poor = await startSandbox(`fairness-${name}-poor`, servers, {
    latencyMs: 20,
    balance: '0',
    merchants: short + 1,
  })
  const shortOnes = Array.from({ length: short }, (_, i) => `short-${i}`)
  const { config, sandbox, env } = testbed
  await IMPLEMENTATIONS.payoutd.prepare(testbed)
  const db = connectDatabase({ url: config.databaseUrl, connections: 2, applicationName: 'bench' })
  const merchants = await merchantsFile(servers.data, [
    { id: MERCHANT_ID, mchId: GATEWAY.mchId, baseUrl: env.GATEWAY_BASE_URL },
    { id: HANGING, mchId: mchIdOf(short + 1), baseUrl: gateway.url },
    ...shortOnes.map((id, i) => ({ id, mchId: mchIdOf(i + 1), baseUrl: poor.url })),
  ])
  const [worker] = await IMPLEMENTATIONS.payoutd.start((args, more) =>
    testbed.spawn(args, { ...more, ...merchants }),
  )
  await db.run(holdBack, {})
  const other = await openLoad(config, false, servers.log)
  const observer = await openObserver(config, servers.log)
  if (backlog > 0) {
    const hanging = await openLoad(config, false, servers.log, [HANGING])
    await hanging.backlog(backlog + open)
    await hanging.close()
    while (((await db.run(states, {})).find(({ state }) => state === 'queued')?.count ?? 0) < backlog + open)
      await delay(500)
    await db.run(openSome, { count: open })
  }
  if (short > 0) {
    const others = await openLoad(config, false, servers.log, shortOnes)
    await others.backlog(2 * short)
    await others.close()
  }
  // Enough for the process's code to be compiled; not counted.
  const warm = await other.steady({ perSecond: 50, seconds: 4 })
  await observer.results(warm.size)
  await db.run(letSend, {})
  if (backlog > 0) await gateway.has(IN_FLIGHT / 2)
  const sent = await other.steady({ perSecond, seconds })
  await observer.results(warm.size + sent.size)
  const left = await db.run(states, {})
  const { results } = await observer.readResults(warm.size + sent.size)
  const tookMs = results.flatMap(({ payoutId, resultAt }) => {
    const at = sent.get(payoutId)
    return at === undefined ? [] : [resultAt - at]
  })
  gateway.close()
  if (worker) await end(worker, 'SIGTERM')
  for (const each of [sandbox, poor.process]) await end(each, 'SIGTERM')
  await other.close()
  await observer.close()
  await db.close()
  await testbed.close()
  return { p50: percentile(tookMs, 0.5), p99: percentile(tookMs, 0.99), left, tookMs }
}

/** Accepts connections and requests, and answers none. */
async function hangingGateway() {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.on('error', () => undefined).resume()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    has: async (count: number) => {
      while (connections < count) await delay(50)
    },
    close: () => server.close(),
  }
}
