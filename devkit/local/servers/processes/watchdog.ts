import { spawn } from 'node:child_process'
import { writeWhole } from './write-whole.ts'

/**
 * Reads `+ PID SIGNAL` and `- PID` lines. When its input ends, because its parent closed it or died in any
 * way, it sends each process still on the list its signal, waits up to 10 s, and kills what is left.
 */
const SCRIPT = `
trap '' INT TERM HUP
list=""
while read -r verb pid signal; do
  rest=""
  for each in $list; do
    case "$each" in "$pid:"*) ;; *) rest="$rest $each" ;; esac
  done
  list="$rest"
  [ "$verb" = + ] && list="$list $pid:$signal"
done
for each in $list; do kill -s "\${each#*:}" "\${each%%:*}" 2>/dev/null; done
turns=0
while [ $turns -lt 100 ]; do
  left=""
  for each in $list; do kill -0 "\${each%%:*}" 2>/dev/null && left=yes; done
  [ -z "$left" ] && exit 0
  sleep 0.1
  turns=$((turns + 1))
done
for each in $list; do kill -s KILL "\${each%%:*}" 2>/dev/null; done
`

/** Makes sure that no server outlives this process, not even when it is killed with SIGKILL. */
export interface Watchdog {
  guard(pid: number, endBy: EndBy): void
  release(pid: number): void
  /** Ends it; whatever is still guarded is ended too. */
  close(): void
}

/** How a server is told to end: Postgres by INT (it does not wait for its clients then), the others by TERM. */
export type EndBy = 'INT' | 'TERM'

/** `listFile` always holds the guarded processes, for the start after one in which the watchdog died too. */
export function startWatchdog(listFile: string): Watchdog {
  // Its own process group, or the terminal's Ctrl-C and hang-up would end it together with its parent.
  const shell = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  shell.unref()
  // A watchdog that somebody ended makes writes fail; the servers are still stopped in order by their owner.
  shell.stdin.on('error', () => undefined)
  const guarded = new Map<number, EndBy>()
  const tell = (line: string) => {
    shell.stdin.write(`${line}\n`)
    writeWhole(listFile, [...guarded].map(([pid, endBy]) => `${pid} ${endBy}\n`).join(''))
  }
  return {
    guard: (pid, endBy) => {
      guarded.set(pid, endBy)
      tell(`+ ${pid} ${endBy}`)
    },
    release: (pid) => {
      guarded.delete(pid)
      tell(`- ${pid}`)
    },
    close: () => void shell.stdin.end(),
  }
}
