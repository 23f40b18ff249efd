import type { ServerProcess } from '../../devkit/local/servers/processes/process.ts'
import { cpuSeconds } from '../testbed/processes.ts'
import type { BenchServers } from '../testbed/servers.ts'

/** CPU seconds, in all or for each 10,000 payouts. `worker`: of all worker processes. */
export type Cpu = { worker: number; postgres: number; kafka: number; sandbox: number }

/** What they have used so far. */
export function cpuOf(
  workers: readonly ServerProcess[],
  sandbox: ServerProcess,
  { stack }: BenchServers,
): Cpu {
  return {
    worker: workers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
    postgres: cpuSeconds(stack.pids.postgres ?? 0),
    kafka: cpuSeconds(stack.pids.kafka ?? 0),
    sandbox: cpuSeconds(sandbox.pid),
  }
}

/** What was used between two looks, for each 10,000 of so many payouts. */
export function cpuPer10000(before: Cpu, after: Cpu, payouts: number): Cpu {
  const each = (of: keyof Cpu) => ((after[of] - before[of]) / payouts) * 10_000
  return {
    worker: each('worker'),
    postgres: each('postgres'),
    kafka: each('kafka'),
    sandbox: each('sandbox'),
  }
}
