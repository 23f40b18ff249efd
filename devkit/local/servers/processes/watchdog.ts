import { spawn } from 'node:child_process'
import { writeWhole } from './write-whole.ts'

/**
 * Reads `+ PID SIGNAL` and `- PID` lines. When its input ends, because its parent closed it or died in any way, it
 * sends each process still on the list its signal, waits up to 10 s, and kills the rest.
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
  /** Ends the watchdog, and the processes it still guards. */
  close(): void
}

/** The signal that ends a server: INT for Postgres (so that it does not wait for its clients), TERM for the others. */
export type EndBy = 'INT' | 'TERM'

/** `listFile` always lists the guarded processes, for the next start if the watchdog died too. */
export function startWatchdog(listFile: string): Watchdog {
  // Its own process group, so that the terminal's Ctrl-C and hang-up do not end it together with its parent.
  const shell = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  shell.unref()
  // If somebody ended the watchdog, writes fail; the owner still stops the servers in order.
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
