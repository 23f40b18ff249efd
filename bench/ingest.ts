import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { writeExample } from '../devkit/local/example/files.ts'
import { lastLines, ServerProcess } from '../devkit/local/servers/processes/process.ts'
import { topicNames } from '../src/messages/topics.ts'
import { connectAdmin } from '../src/platform/kafka/admin.ts'
import { systemClock } from '../src/platform/running/clock.ts'
import { keepResults } from './figures/results.ts'
import { payoutdProgram } from './testbed/implementations.ts'
import { cpuSeconds, peakMemoryMb } from './testbed/processes.ts'
import { type BenchServers, onFreshServers } from './testbed/servers.ts'
import { openTestbed, type Testbed } from './testbed/testbed.ts'

/** The memory limit of `payoutd ingest`, however large the file is. */
const MEMORY_LIMIT_MB = 200
const SEED = 202611
const SAMPLE_MS = 20

type Ingest = { kind: string; seconds: number; cpuSeconds: number; peakMemoryMb: number }

await new Command('ingest')
  .description('measures how fast a large payroll file is brought in, and in how much memory')
  .option('--rows <count>', 'rows of the file', Number, 1_000_000)
  .option('--dir <dir>', 'where the stack keeps its data; emptied first', '.payoutd/bench')
  .action(({ rows, dir }: { rows: number; dir: string }) =>
    onFreshServers(dir, (servers) => bench(rows, servers)),
  )
  .parseAsync()

async function bench(rows: number, servers: BenchServers): Promise<void> {
  const at = new Date(systemClock.now())
  const testbed = await openTestbed('ingest', servers, { inFlight: 1, latencyMs: 0 })
  const file = path.join(servers.data, 'payroll.csv')
  const { rejected, duplicates } = await writeExample(file, rows, SEED)
  const megabytes = (await stat(file)).size / 1e6
  console.log(`the file: ${format(rows)} rows, ${format(megabytes)} MB`)

  const ingest = await measure(file, testbed, servers)
  const published = await countCommands(testbed, servers)
  await testbed.close()
  // One record for each payout, and one that declares the batch.
  const expected = rows - rejected - duplicates + 1
  if (ingest.kind !== 'published' || published !== expected)
    throw new Error(`${ingest.kind}: ${published} records of ${expected} are on Kafka`)

  const { seconds, peakMemoryMb: peak } = ingest
  const kept = await keepResults('ingest', at, { rows, megabytes, published, ...ingest })
  console.log(`ingested in ${seconds.toFixed(1)} s: ${format(rows / seconds)} rows/s`)
  console.log(`CPU: ${ingest.cpuSeconds.toFixed(1)} s, peak memory: ${format(peak)} MB of ${MEMORY_LIMIT_MB}`)
  console.log(`raw numbers: ${kept}`)
  if (peak > MEMORY_LIMIT_MB) process.exitCode = 1
}

/** Runs `payoutd ingest` and watches it from outside. */
async function measure(file: string, { env }: Testbed, { logs, data, host }: BenchServers): Promise<Ingest> {
  const logFile = path.join(logs, 'ingest.log')
  const args = [
    // As in `npm run ingest`.
    '--max-semi-space-size=2',
    payoutdProgram,
    'ingest',
    file,
    '--batch',
    'bench',
    '--publish-valid-rows',
    '--json',
  ]
  const began = systemClock.monotonic()
  // Its checkpoints go below its working directory, which is emptied with the rest.
  const command = { file: process.execPath, args, env, cwd: data }
  const running = await ServerProcess.spawn(command, logFile, 'TERM', host)
  let cpu = 0
  let peak = 0
  while (!running.gone) {
    cpu = Math.max(cpu, cpuSeconds(running.pid))
    peak = Math.max(peak, peakMemoryMb(running.pid) ?? 0)
    await delay(SAMPLE_MS)
  }
  const seconds = (systemClock.monotonic() - began) / 1_000
  const outcome = (await readFile(logFile, 'utf8')).split('\n').find((line) => line.startsWith('{"kind"'))
  if (outcome === undefined) throw new Error(`ingest says nothing:\n${await lastLines(logFile)}`)
  return { kind: JSON.parse(outcome).kind, seconds, cpuSeconds: cpu, peakMemoryMb: peak }
}

async function countCommands({ config }: Testbed, { log }: BenchServers): Promise<number> {
  const admin = await connectAdmin(config.kafka, log)
  const ranges = await admin.ranges(topicNames(config.topicPrefix).commands)
  await admin.close()
  return ranges.reduce((sum, { low, high }) => sum + Number(high - low), 0)
}

function format(value: number): string {
  return Math.round(value).toLocaleString('en')
}
