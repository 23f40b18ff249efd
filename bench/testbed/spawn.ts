import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Host, lastLines, ServerProcess } from '../../devkit/local/servers/processes/process.ts'

/** Starts one worker process and resolves once it prints that it is up, with that line. */
export type Spawn = (
  args: string[],
  env?: Record<string, string>,
) => Promise<{ process: ServerProcess; said: Record<string, unknown> }>

/**
 * Starts a Node program with its output in `logFile`, and resolves with the first line that contains `ready`.
 * Throws, with the end of its log, if it ends before.
 */
export async function spawnNode(
  args: string[],
  options: { env?: Record<string, string>; logFile: string; ready: string; host: Host },
): Promise<{ process: ServerProcess; line: string }> {
  const { env, logFile, ready, host } = options
  const command = { file: process.execPath, args, ...(env && { env }) }
  const started = await ServerProcess.spawn(command, logFile, 'TERM', host)
  for (;;) {
    const line = (await readFile(logFile, 'utf8')).split('\n').find((each) => each.includes(ready))
    if (line !== undefined) return { process: started, line }
    if (started.gone) {
      throw new Error(`${path.basename(args[0] ?? '')} did not start:\n${await lastLines(logFile)}`)
    }
    await delay(10)
  }
}
