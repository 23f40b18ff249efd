import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { payoutdNode } from '../../devkit/local/demo/payoutd-process.ts'
import type { ServerProcess } from '../../devkit/local/servers/processes/process.ts'
import { migrateAll } from '../../src/ledger/tables/migrate-all.ts'
import { silentLogger } from '../../src/platform/log.ts'
import { TRACE_GARBAGE } from '../figures/garbage.ts'
import type { Spawn } from './spawn.ts'
import type { Testbed } from './testbed.ts'

export type Implementation = {
  /** Creates its tables, before the clock starts. */
  prepare(testbed: Pick<Testbed, 'config' | 'env'>): Promise<unknown>
  start(spawn: Spawn): Promise<ServerProcess[]>
}

export const payoutdProgram = path.join(import.meta.dirname, '../../bin/payoutd.ts')
const node = [...payoutdNode, TRACE_GARBAGE]
const serve = [...node, payoutdProgram, 'serve']

/** A program in `contenders/`, which makes its own tables when it starts. */
const rival = (file: string): Implementation => ({
  prepare: async () => undefined,
  start: async (spawn) => [
    (await spawn([...node, path.join(import.meta.dirname, '..', 'contenders', file)])).process,
  ],
})

export const IMPLEMENTATIONS = {
  /** All roles in one process. */
  payoutd: {
    prepare: ({ config }) => migrateAll(config, silentLogger),
    start: async (spawn) => [(await spawn(serve)).process],
  },
  /** One process for everything that talks to the outside, another that feeds it. */
  'payoutd-split': {
    prepare: ({ config }) => migrateAll(config, silentLogger),
    start: async (spawn) => {
      const settling = await spawn([...serve, '--roles', 'outcomes,relay'])
      const sending = await spawn([...serve, '--roles', 'intake,dispatch'], {
        PUBLIC_URL: String(settling.said.publicUrl),
      })
      return [settling.process, sending.process]
    },
  },
  naive: rival('naive.ts'),
  'pg-boss': rival('pg-boss.ts'),
  'graphile-worker': rival('graphile-worker.ts'),
} satisfies Record<string, Implementation>

/**
 * The implementation with this name. `payoutd@PATH`: payoutd as another checkout has it, with its own tables; its packages must
 * be installed there. Undefined: there is none.
 */
export function implementationOf(name: string): Implementation | undefined {
  if (Object.hasOwn(IMPLEMENTATIONS, name)) return IMPLEMENTATIONS[name as keyof typeof IMPLEMENTATIONS]
  const [, checkout] = /^payoutd@(.+)$/.exec(name) ?? []
  const program = checkout && programIn(checkout)
  if (!program) return undefined
  // Earlier releases do not ask who migrates.
  const who =
    program === path.resolve(checkout, 'src/cli/payoutd.ts') ? [] : ['--by', 'bench', '--reason', 'benchmark']
  return {
    prepare: ({ env }) => promisify(execFile)(process.execPath, [program, 'migrate', ...who], { env }),
    start: async (spawn) => [(await spawn([...node, program, 'serve'])).process],
  }
}

/** The command-line program of a payoutd, as `implementationOf` names it. */
export const programOf = (name: string): string | undefined => {
  const [, checkout] = /^payoutd@(.+)$/.exec(name) ?? []
  return checkout ? programIn(checkout) : name === 'payoutd' ? payoutdProgram : undefined
}

/** Earlier releases have the program in another folder. */
const programIn = (checkout: string): string | undefined =>
  ['bin/payoutd.ts', 'src/cli/payoutd.ts'].map((file) => path.resolve(checkout, file)).find(existsSync)
