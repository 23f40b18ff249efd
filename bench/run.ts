import path from 'node:path'
import { end } from '../devkit/local/servers/server.ts'
import { topicNames } from '../src/messages/topics.ts'
import { countDatabaseWork, topicBytes } from './figures/costs.ts'
import { type Cpu, cpuOf, cpuPer10000 } from './figures/cpu.ts'
import { garbageOf } from './figures/garbage.ts'
import { percentile, sum } from './figures/statistics.ts'
import { type Implementation, implementationOf } from './testbed/implementations.ts'
import { openLoad, type Sent } from './testbed/load.ts'
import { compareWithBooks, type Observed, openObserver } from './testbed/observe.ts'
import { peakMemoryMb, readsAndWrites } from './testbed/processes.ts'
import type { BenchServers } from './testbed/servers.ts'
import { type BenchSettings, STEADY } from './testbed/settings.ts'
import { openTestbed, type Testbed } from './testbed/testbed.ts'

/** p50 and p99, in ms. */
export type Spread = { p50: number; p99: number }

/** One run of one contender. */
export type Measurement = {
  implementation: string
  round: number
  /** From the first event to the last result of the backlog. */
  payoutsPerSecond: number
  /** CPU seconds per 10,000 payouts of the backlog, from the worker being up to the last result. */
  cpu: Cpu
  /** Of the largest worker process, from its start to its end. */
  peakMemoryMb: number
  /** Results published more than once, which is allowed. */
  repeats: number
  /** For each payout of the backlog, and in rows by table. `messages` and their bytes are of all payouts of the run. */
  perPayout: {
    commits: number
    fsyncs: number
    walBytes: number
    rows: Record<string, number>
    readsAndWrites: number
    /** What the workers' garbage collectors freed, in kB, and how long they stopped them, in ms. */
    garbageKb: number
    garbageMs: number
    messages: number
    messageBytes: number
  }
  /** While it works off the backlog: from the moment a callback was due to its result on Kafka. */
  backlog: { callbackToResult: Spread; legs: Legs }
  /** Under each steady load. */
  steady: { perSecond: number; commandToApply: Spread; callbackToResult: Spread; legs: Legs }[]
}

/** The ways of a payout, one after the other. A state counts as stored from the beginning of its transaction. */
export type Legs = Record<keyof typeof LEGS, Spread>

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
  const pids = workers.map(({ pid }) => pid)
  const before = cpuOf(workers, sandbox, servers)
  const databaseWork = await countDatabaseWork(config.databaseUrl)
  const calls = sum(pids.map(readsAndWrites))
  const garbage = await garbageOf(workers)
  await observer.results(backlog.size)
  const cpu = cpuPer10000(before, cpuOf(workers, sandbox, servers), backlog.size)
  const perPayout = (count: number) => count / backlog.size
  const callsEach = perPayout(sum(pids.map(readsAndWrites)) - calls)
  const collected = await garbageOf(workers)
  const { rows, ...work } = await databaseWork()

  const loads = []
  let total = backlog.size
  for (const each of STEADY) {
    const sent = await load.steady(each)
    total += sent.size
    loads.push({ ...each, sent })
    await observer.results(total)
  }
  const peak = Math.max(...pids.map((pid) => peakMemoryMb(pid) ?? 0))

  const { results, repeats } = await observer.readResults(total)
  for (const worker of workers) await end(worker, 'SIGTERM')
  await end(sandbox, 'SIGTERM')
  const events = await observer.readEvents()
  const payouts = compareWithBooks(results, events, stateFile)
  const { commands, ...published } = topicNames(config.topicPrefix)
  const kafkaData = path.join(path.dirname(servers.data), 'kafka')
  const bytes = await Promise.all(Object.values(published).map((topic) => topicBytes(kafkaData, topic)))
  await load.close()
  await observer.close()
  const ofBacklog = payouts.filter(({ payoutId }) => backlog.has(payoutId))
  const endedAt = ofBacklog.reduce((last, { resultAt }) => Math.max(last, resultAt), 0)
  return {
    payoutsPerSecond: backlog.size / ((endedAt - events.firstAt) / 1_000),
    cpu,
    peakMemoryMb: peak,
    repeats,
    perPayout: {
      ...{
        commits: perPayout(work.commits),
        fsyncs: perPayout(work.fsyncs),
        walBytes: perPayout(work.walBytes),
      },
      rows: Object.fromEntries(Object.entries(rows).map(([table, count]) => [table, perPayout(count)])),
      readsAndWrites: callsEach,
      garbageKb: perPayout((collected.megabytes - garbage.megabytes) * 1_000),
      garbageMs: perPayout(collected.ms - garbage.ms),
      ...{ messages: events.messages / total, messageBytes: sum(bytes) / total },
    },
    backlog: { callbackToResult: spread(ofBacklog.map(callbackToResult)), legs: legs(ofBacklog, backlog) },
    steady: loads.map(({ perSecond, sent }) => {
      const own = payouts.filter(({ payoutId }) => sent.has(payoutId))
      return {
        perSecond,
        commandToApply: spread(own.map((payout) => commandToApply(payout, sent))),
        callbackToResult: spread(own.map(callbackToResult)),
        legs: legs(own, sent),
      }
    }),
  }
}

const callbackToResult = ({ calledBackAt, resultAt }: Observed) => resultAt - calledBackAt
const commandToApply = ({ payoutId, appliedAt }: Observed, sent: Sent) =>
  appliedAt - (sent.get(payoutId) ?? Number.NaN)

const LEGS = {
  commandToStored: ({ payoutId, states }: Observed, sent: Sent) =>
    at(states, 'QUEUED') - (sent.get(payoutId) ?? Number.NaN),
  storedToClaimed: ({ states }: Observed) => at(states, 'SUBMITTING') - at(states, 'QUEUED'),
  claimedToApply: ({ states, appliedAt }: Observed) => appliedAt - at(states, 'SUBMITTING'),
  applyToAnswer: ({ states, appliedAt }: Observed) => at(states, 'PROCESSING') - appliedAt,
  callbackToPaid: ({ states, calledBackAt }: Observed) => at(states, 'PAID') - calledBackAt,
  paidToResult: ({ states, resultAt }: Observed) => resultAt - at(states, 'PAID'),
}
/** NaN: the payout was never in that state, as `processing` if its callback came before its answer was stored. */
const at = (states: Observed['states'], state: string) => states.get(state) ?? Number.NaN

const legs = (payouts: readonly Observed[], sent: Sent): Legs => {
  const of = (leg: keyof Legs) =>
    spread(payouts.map((payout) => LEGS[leg](payout, sent)).filter((ms) => !Number.isNaN(ms)))
  return {
    ...{ commandToStored: of('commandToStored'), storedToClaimed: of('storedToClaimed') },
    ...{ claimedToApply: of('claimedToApply'), applyToAnswer: of('applyToAnswer') },
    ...{ callbackToPaid: of('callbackToPaid'), paidToResult: of('paidToResult') },
  }
}

const spread = (values: number[]): Spread => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) })
