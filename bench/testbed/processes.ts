import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts CPU time in these (USER_HZ). */
const TICKS_PER_SECOND = 100

type Stat = { parent: number; ticks: number; ticksOfDead: number }

/**
 * CPU seconds, user and system, that a process and everything below it have used so far. Ended children count
 * through their parent, so PostgreSQL's connections are included.
 */
export function cpuSeconds(pid: number): number {
  const all = new Map(readdirSync('/proc').filter(isPid).flatMap(readStat))
  const family = [pid]
  for (const member of family) {
    for (const [child, { parent }] of all) if (parent === member) family.push(child)
  }
  const ticks = family
    .map((member) => all.get(member))
    .map((stat) => (stat ? stat.ticks + stat.ticksOfDead : 0))
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND
}

/** The most resident memory that a process has had, in MB (VmHWM); null if it is gone. */
export function peakMemoryMb(pid: number): number | null {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '') ?? []
  return kilobytes === undefined ? null : Number(kilobytes) / 1024
}

/** How often a process has read or written, files and sockets, from its start; 0 if it is gone (proc_pid_io(5)). */
export function readsAndWrites(pid: number): number {
  const counts = (read(`/proc/${pid}/io`) ?? '').matchAll(/^sysc[rw]: (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Null if the process has ended meanwhile. */
function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

const isPid = (name: string) => /^\d+$/.test(name)

function readStat(pid: string): [number, Stat][] {
  const text = read(`/proc/${pid}/stat`)
  if (text === null) return []
  // The name, in parentheses, may contain anything; proc_pid_stat(5) counts the fields from 1, and field 3 comes
  // after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (n: number) => Number(fields[n - 3])
  return [
    [Number(pid), { parent: field(4), ticks: field(14) + field(15), ticksOfDead: field(16) + field(17) }],
  ]
}
