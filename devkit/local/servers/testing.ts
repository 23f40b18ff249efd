import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { silentLogger } from '../../../src/platform/log.ts'
import { type Stack, type StackOptions, startStack } from './stack.ts'

/** Given addresses that make a stack start only Postgres, which takes a second. */
export const OTHERS_GIVEN = {
  kafkaBrokers: ['kafka.invalid:9092'],
  schemaRegistryUrl: 'http://registry.invalid',
}

export interface StackDir {
  path: string
  /** Starts a stack here, without sandbox and on unusual ports, unless the options say otherwise. */
  start(options?: Partial<StackOptions>): Promise<Stack>
}

/** The test's own directory. At the end of the test its stacks stop, then it is deleted. */
export function freshDir(t: Owner): StackDir {
  const dir = mkdtempSync(path.join(tmpdir(), 'payoutd-stack-'))
  return stackDir(t, dir, () => rmSync(dir, { recursive: true, force: true }))
}

/** The directory of an earlier test: Postgres need not create its cluster again, which takes a second. */
export const usedDir = (t: Owner, { path }: StackDir): StackDir => stackDir(t, path, () => undefined)

type Owner = { after(drop: () => Promise<void>): void }

function stackDir(t: Owner, dir: string, drop: () => void): StackDir {
  const stacks: Stack[] = []
  t.after(async () => {
    await Promise.all(stacks.map((stack) => stack.stop()))
    drop()
  })
  return {
    path: dir,
    start: async (options) => {
      const stack = await startStack({ dir, sandbox: false, ports: 'any', log: silentLogger, ...options })
      stacks.push(stack)
      return stack
    },
  }
}

/** The rows of one statement, on its own connection. */
export async function query(databaseUrl: string, statement: string): Promise<unknown[]> {
  const client = new Client(databaseUrl)
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

/** Waits for `condition`, and fails after 30 s. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; !(await condition()); turns++) {
    if (turns > 1_500) throw new Error(`never came true: ${what}`)
    await delay(20)
  }
}

/** Whether the process runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
