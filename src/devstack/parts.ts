import type { Logger } from '../platform/log.ts'
import { Part } from './part.ts'
import { isFree, type PortName, type Ports } from './ports.ts'
import type { PartName, Server } from './server.ts'

export type Progress = (part: PartName, progress: 'starting' | 'ready') => void

/** The servers of one stack, in the order in which they were started. */
export class Parts {
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
   * Starts a server on the ports it needs. When a stranger takes one between choosing and listening, which
   * happens when two stacks start at once, it is tried again on others. Throws `ServerFailed`.
   */
  async start<Needed extends PortName>(
    name: PartName,
    needed: Needed[],
    build: (ports: Record<Needed, number>) => Server,
  ): Promise<Record<Needed, number>> {
    this.#onProgress(name, 'starting')
    for (let attempt = 1; ; attempt++) {
      const chosen = await this.#choose(needed)
      const part = new Part(name, build(chosen), this.#log)
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
    const running = [...this.#parts.values()].filter((part) => part.pid !== undefined)
    return Object.fromEntries(running.map((part) => [part.name, part.pid]))
  }

  get(name: PartName): Part {
    const part = this.#parts.get(name)
    if (!part) throw new Error(`${name} is no part of this stack`)
    return part
  }

  /** Postgres last, because the registry keeps its schemas there. */
  async stop(): Promise<void> {
    const others = [...this.#parts.values()].filter((part) => part.name !== 'postgres')
    await Promise.all(others.map((part) => part.stop()))
    await this.#parts.get('postgres')?.stop()
  }

  async #choose<Needed extends PortName>(needed: Needed[]): Promise<Record<Needed, number>> {
    const chosen: Partial<Record<Needed, number>> = {}
    for (const name of needed) chosen[name] = await this.#ports.choose(name)
    return chosen as Record<Needed, number>
  }
}
