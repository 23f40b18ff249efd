import type { Logger } from '../../../src/platform/log.ts'
import { Part } from './part.ts'
import { isFree, type PortName, type Ports } from './processes/ports.ts'
import type { ServerProcess } from './processes/process.ts'
import { type PartName, type Server, ServerFailed } from './server.ts'

export type Progress = (part: PartName, progress: 'starting' | 'ready') => void

/** The servers of one stack, in the order they started. */
export class ServerParts {
  readonly #parts = new Map<PartName, Part>()
  readonly #ports: Ports
  readonly #log: Logger
  readonly #onProgress: Progress

  constructor(ports: Ports, log: Logger, onProgress: Progress) {
    this.#ports = ports
    this.#log = log
    this.#onProgress = onProgress
  }

  /**
   * Starts a server on the ports it needs. If another program takes one between choosing and listening, as when two
   * stacks start at once, it tries others. Throws `ServerFailed`.
   */
  async start<Needed extends PortName>(
    name: PartName,
    needed: Needed[],
    build: (ports: Record<Needed, number>) => Server,
  ): Promise<Record<Needed, number>> {
    this.#onProgress(name, 'starting')
    for (let attempt = 1; ; attempt++) {
      const chosen = await this.#choose(needed)
      const part = new Part(build(chosen), (running, how) => void this.#tellLost(name, running, how))
      try {
        await part.start()
        this.#parts.set(name, part)
        this.#onProgress(name, 'ready')
        return chosen
      } catch (error) {
        const free = await Promise.all(needed.map((each) => isFree(chosen[each])))
        if (attempt === 3 || free.every(Boolean)) throw error
      }
    }
  }

  /** The process of each server that runs. */
  get pids(): Partial<Record<PartName, number>> {
    const running = [...this.#parts].flatMap(([name, { pid }]) => (pid === undefined ? [] : [[name, pid]]))
    return Object.fromEntries(running)
  }

  get(name: PartName): Part {
    const part = this.#parts.get(name)
    if (!part) throw new Error(`${name} is no part of this stack`)
    return part
  }

  /** Stops Postgres last, because the registry keeps its schemas there. */
  async stop(): Promise<void> {
    const others = [...this.#parts].filter(([name]) => name !== 'postgres')
    await Promise.all(others.map(([, part]) => part.stop()))
    await this.#parts.get('postgres')?.stop()
  }

  async #tellLost(name: PartName, running: ServerProcess, how: string): Promise<void> {
    const failed = await ServerFailed.of(name, how, running.logFile)
    this.#log.error({ part: name, pid: running.pid }, failed.message)
  }

  async #choose<Needed extends PortName>(needed: Needed[]): Promise<Record<Needed, number>> {
    const chosen: Partial<Record<Needed, number>> = {}
    for (const name of needed) chosen[name] = await this.#ports.choose(name)
    return chosen as Record<Needed, number>
  }
}
