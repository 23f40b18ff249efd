import { readFile } from 'node:fs/promises'
import type { ServerProcess } from '../../devkit/local/servers/processes/process.ts'
import { sum } from './statistics.ts'

/** Makes Node write a line for each collection. */
export const TRACE_GARBAGE = '--trace-gc'

/** What V8's collector did in some processes: how much it freed, and for how long nothing else ran. */
export type Garbage = { megabytes: number; ms: number }

/** A line of V8, such as `[7:0x1] 46 ms: Scavenge 4.9 (6.0) -> 4.5 (7.0) MB, pooled: 0 MB, 5.03 / 0.00 ms …`. */
const COLLECTION =
  /ms: (?:Scavenge|Mark-Compact)[^\n]*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \([\d.]+\) MB, [^\n]*?([\d.]+) \/ /g

/** So far. The processes run with TRACE_GARBAGE. */
export async function garbageOf(workers: readonly ServerProcess[]): Promise<Garbage> {
  const logs = await Promise.all(workers.map(({ logFile }) => readFile(logFile, 'utf8')))
  const collections = logs.flatMap((log) => [...log.matchAll(COLLECTION)])
  const all = (value: (line: RegExpExecArray) => number) => sum(collections.map(value))
  return {
    megabytes: all(([, before, after]) => Number(before) - Number(after)),
    ms: all(([, , , ms]) => Number(ms)),
  }
}
