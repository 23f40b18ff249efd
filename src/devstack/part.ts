import type { Logger } from '../platform/log.ts'
import type { ServerProcess } from './process.ts'
import { type PartName, type Server, ServerFailed } from './server.ts'

/** A server of the stack while the stack is up: it can be stopped, killed and started again. */
export class Part {
  readonly name: PartName
  readonly #server: Server
  readonly #log: Logger
  #running: ServerProcess | undefined
  /** An end that we asked for is no news. */
  #endExpected = false

  constructor(name: PartName, server: Server, log: Logger) {
    this.name = name
    this.#server = server
    this.#log = log
  }

  get pid(): number | undefined {
    return this.#running?.gone === false ? this.#running.pid : undefined
  }

  async start(): Promise<void> {
    this.#endExpected = false
    const running = await this.#server.start()
    this.#running = running
    void running.exited.then((how) => this.#report(running, how))
  }

  async stop(): Promise<void> {
    this.#endExpected = true
    if (this.#running) await this.#server.stop(this.#running)
  }

  /** SIGKILL, as a crash would be. */
  async kill(): Promise<void> {
    this.#endExpected = true
    this.#running?.signal('SIGKILL')
    await this.#running?.exited
  }

  async #report(running: ServerProcess, how: string): Promise<void> {
    if (this.#endExpected) return
    const failed = await ServerFailed.of(this.name, how, running.logFile)
    this.#log.error({ part: this.name, pid: running.pid }, failed.message)
  }
}
