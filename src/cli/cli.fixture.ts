import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'

export type Ended = { code: number | null; stdout: string; stderr: string }

/**
 * Runs `payoutd …args` as a process of its own, with nothing but `env` and with `input` as its stdin, and resolves
 * when it has ended. `started` is given the process.
 */
export function payoutd(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input = '',
  started: (child: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  const program = path.join(import.meta.dirname, 'payoutd.ts')
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  started(child)
  // Many a command ends without having read it.
  child.stdin.on('error', () => undefined).end(input)
  const ended: Ended = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ended.stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...ended, code }))
  })
}
