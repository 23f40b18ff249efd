import path from 'node:path'
import { payoutdNode } from '../devkit/local/demo/payoutd-process.ts'
import type { ServerProcess } from '../devkit/local/servers/processes/process.ts'
import type { Config } from '../src/config/config.ts'
import { migrateAll } from '../src/ledger/tables/migrate-all.ts'
import { silentLogger } from '../src/platform/log.ts'

/** Starts one worker process and resolves once it prints that it is up, with that line. */
export type Spawn = (
  args: string[],
  env?: Record<string, string>,
) => Promise<{ process: ServerProcess; said: Record<string, unknown> }>

export type Implementation = {
  /** Creates its tables, before the clock starts. */
  prepare(config: Config): Promise<unknown>
  start(spawn: Spawn): Promise<ServerProcess[]>
}

export const payoutdProgram = path.join(import.meta.dirname, '../bin/payoutd.ts')
const serve = [...payoutdNode, payoutdProgram, 'serve']

export const IMPLEMENTATIONS = {
  /** All roles in one process. */
  payoutd: {
    prepare: (config) => migrateAll(config, silentLogger),
    start: async (spawn) => [(await spawn(serve)).process],
  },
  /** One process for everything that talks to the outside, another that feeds it. */
  'payoutd-split': {
    prepare: (config) => migrateAll(config, silentLogger),
    start: async (spawn) => {
      const settling = await spawn([...serve, '--roles', 'outcomes,relay'])
      const sending = await spawn([...serve, '--roles', 'intake,dispatch'], {
        PUBLIC_URL: String(settling.said.publicUrl),
      })
      return [settling.process, sending.process]
    },
  },
  naive: {
    prepare: async () => undefined,
    start: async (spawn) => [
      (await spawn([...payoutdNode, path.join(import.meta.dirname, 'naive.ts')])).process,
    ],
  },
} satisfies Record<string, Implementation>

export type ImplementationName = keyof typeof IMPLEMENTATIONS
