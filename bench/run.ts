import type { ServerProcess } from '../devkit/local/servers/processes/process.ts'
import { end } from '../devkit/local/servers/server.ts'
import { type Implementation, implementationOf } from './implementations.ts'
import { openLoad, type Sent } from './load.ts'
import { compareWithBooks, type Observed, openObserver } from './observe.ts'
import { cpuSeconds, peakMemoryMb } from './processes.ts'
import type { BenchServers } from './servers.ts'
import { type BenchSettings, STEADY } from './settings.ts'
import { percentile } from './statistics.ts'
import { openTestbed, type Testbed } from './testbed.ts'

/** p50 and p99, in ms. */
export type Spread = { p50: number; p99: number }

/** One run of one contender. */
export type Measurement = {
  implementation: string
  round: number
  /** From the first event to the last result of the backlog. */
  payoutsPerSecond: number
  /** CPU seconds per 10,000 payouts of the backlog, from the worker being up to the last result. */
  cpu: { worker: number; postgres: number; kafka: number; sandbox: number }
  /** Of the largest worker process, from its start to its end. */
  peakMemoryMb: number
  /** Results published more than once, which is allowed. */
  repeats: number
  /** While it works off the backlog: from the moment a callback was due to its result on Kafka. */
  backlog: { callbackToResult: Spread }
  /** Under the steady load. */
  steady: { commandToApply: Spread; callbackToResult: Spread }
}

/** Lets one contender work off a backlog and then a steady load, on its own database and topics. */
export async function run(
  name: string,
  round: number,
  servers: BenchServers,
  settings: BenchSettings,
): Promise<Measurement> {
  const implementation = implementationOf(name)
  if (!implementation) throw new Error(`there is no ${name} to measure`)
  const testbed = await openTestbed(`${name.replace(/@.*$/, '-elsewhere')}-${round}`, servers, settings)
  try {
    return { implementation: name, round, ...(await measure(implementation, testbed, servers, settings)) }
  } finally {
    await testbed.close()
  }
}

async function measure(
  implementation: Implementation,
  testbed: Testbed,
  servers: BenchServers,
  settings: BenchSettings,
) {
  const { config, sandbox, stateFile, spawn } = testbed
  await implementation.prepare(testbed)
  const load = await openLoad(config, settings.tail, servers.log)
  const observer = await openObserver(config, servers.log)
  const backlog = await load.backlog(settings.payouts)

  const workers = await implementation.start(spawn)
  const before = cpuOf(workers, sandbox, servers)
  await observer.results(backlog.size)
  const cpu = per10000(difference(cpuOf(workers, sandbox, servers), before), backlog.size)

  const steady = await load.steady(STEADY)
  await observer.results(backlog.size + steady.size)
  const peak = Math.max(...workers.map(({ pid }) => peakMemoryMb(pid) ?? 0))

  const { results, repeats } = await observer.readResults(backlog.size + steady.size)
  for (const worker of workers) await end(worker, 'SIGTERM')
  await end(sandbox, 'SIGTERM')
  const payouts = compareWithBooks(results, stateFile)
  const startedAt = await observer.firstEventAt()
  await load.close()
  await observer.close()
  const ofBacklog = payouts.filter(({ payoutId }) => backlog.has(payoutId))
  const ofSteady = payouts.filter(({ payoutId }) => steady.has(payoutId))
  const endedAt = ofBacklog.reduce((last, { resultAt }) => Math.max(last, resultAt), 0)
  return {
    payoutsPerSecond: backlog.size / ((endedAt - startedAt) / 1_000),
    cpu,
    peakMemoryMb: peak,
    repeats,
    backlog: { callbackToResult: spread(ofBacklog.map(callbackToResult)) },
    steady: {
      commandToApply: spread(ofSteady.map((payout) => commandToApply(payout, steady))),
      callbackToResult: spread(ofSteady.map(callbackToResult)),
    },
  }
}

type Cpu = Measurement['cpu']

function cpuOf(workers: ServerProcess[], sandbox: ServerProcess, { stack }: BenchServers): Cpu {
  return {
    worker: workers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    postgres: cpuSeconds(stack.pids.postgres ?? 0),
    kafka: cpuSeconds(stack.pids.kafka ?? 0),
    sandbox: cpuSeconds(sandbox.pid),
  }
}

const map = (cpu: Cpu, change: (seconds: number, of: keyof Cpu) => number): Cpu => ({
  worker: change(cpu.worker, 'worker'),
  postgres: change(cpu.postgres, 'postgres'),
  kafka: change(cpu.kafka, 'kafka'),
  sandbox: change(cpu.sandbox, 'sandbox'),
})
const difference = (after: Cpu, before: Cpu) => map(after, (seconds, of) => seconds - before[of])
const per10000 = (cpu: Cpu, payouts: number) => map(cpu, (seconds) => (seconds / payouts) * 10_000)

const callbackToResult = ({ calledBackAt, resultAt }: Observed) => resultAt - calledBackAt
const commandToApply = ({ payoutId, appliedAt }: Observed, sent: Sent) =>
  appliedAt - (sent.get(payoutId) ?? Number.NaN)
const spread = (values: number[]): Spread => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) })
