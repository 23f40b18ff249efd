import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { payoutdNode } from '../../devkit/local/demo/payoutd-process.ts'
import type { DemoSettings } from '../../devkit/local/demo/settings.ts'
import type { Crash } from '../crash.ts'

const root = path.resolve(import.meta.dirname, '../..')
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export type ProcOptions = {
  /** Names its files; unique in its world. */
  name: string
  /** A command of payoutd with its arguments, or a program of the prover's. */
  command: readonly string[]
  program?: string
  settings: DemoSettings
  dir: string
  crash?: Crash | undefined
}

/** One process of payoutd that a test may end, freeze and inspect. */
export class Proc {
  readonly name: string
  readonly logFile: string
  readonly internalUrl: string
  readonly #child: ChildProcess
  readonly #reachedFile: string
  readonly gone: Promise<NodeJS.Signals | number>
  #isGone = false

  private constructor(child: ChildProcess, options: ProcOptions, logFile: string, reachedFile: string) {
    this.name = options.name
    this.logFile = logFile
    this.#reachedFile = reachedFile
    this.internalUrl = `http://127.0.0.1:${options.settings.INTERNAL_PORT}`
    this.#child = child
    running.add(child)
    this.gone = once(child, 'exit').then(([code, signal]) => {
      running.delete(child)
      this.#isGone = true
      return signal ?? code
    })
  }

  static spawn(options: ProcOptions): Proc {
    const { name, command, settings, dir, crash, program = 'bin/payoutd.ts' } = options
    const logFile = path.join(dir, `${name}.log`)
    const reachedFile = path.join(dir, `${name}.reached`)
    rmSync(`${reachedFile}.done`, { force: true })
    const out = openSync(logFile, 'a')
    const child = spawn(
      process.execPath,
      [...payoutdNode, '--import', path.join(root, 'prove/crash.ts'), path.join(root, program), ...command],
      {
        stdio: ['ignore', out, out],
        env: {
          PATH: process.env.PATH,
          ...settings,
          PROVE_REACHED: reachedFile,
          ...(crash && { PROVE_CRASH: JSON.stringify(crash) }),
        },
      },
    )
    return new Proc(child, options, logFile, reachedFile)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isGone(): boolean {
    return this.#isGone
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.gone
  }

  /** Whether it is gone within this many ms. */
  diesWithin(ms: number): Promise<boolean> {
    return Promise.race([this.gone.then(() => true), delay(ms, false, { ref: false })])
  }

  /** Resolves once it serves; with false once it is gone, or frozen at its crash point. */
  async up(withinMs = 30_000): Promise<boolean> {
    const giveUp = Date.now() + withinMs
    while (!this.#isGone && !this.isFrozen()) {
      const answer = await fetch(`${this.internalUrl}/readyz`, { signal: AbortSignal.timeout(1_000) }).catch(
        () => undefined,
      )
      if (answer?.status === 200) return true
      if (Date.now() > giveUp)
        throw new Error(`${this.name} is not up after ${withinMs / 1000} s: ${this.tail()}`)
      await delay(20)
    }
    return false
  }

  /** Whether it is stopped by SIGSTOP. */
  isFrozen(): boolean {
    try {
      return /^State:\s*T/m.test(readFileSync(`/proc/${this.pid}/status`, 'utf8'))
    } catch {
      return false
    }
  }

  /** The crash points that it has passed, as text. */
  reached(): string[] {
    try {
      return readFileSync(this.#reachedFile, 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }

  tail(lines = 10): string {
    return readFileSync(this.logFile, 'utf8').split('\n').slice(-lines).join('\n')
  }
}

/** Ports that are free now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  return ports
}
