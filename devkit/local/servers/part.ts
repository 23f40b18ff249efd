import type { ServerProcess } from './processes/process.ts'
import type { Server } from './server.ts'

/** One server of a stack that is up: it can be stopped, killed and started again. */
export class Part {
  readonly #server: Server
  readonly #onLost: (running: ServerProcess, how: string) => void
  #running: ServerProcess | undefined
  #endExpected = false

  /** `onLost` is called when the server ends unasked. */
  constructor(server: Server, onLost: (running: ServerProcess, how: string) => void) {
    this.#server = server
    this.#onLost = onLost
  }

  get pid(): number | undefined {
    return this.#running?.gone === false ? this.#running.pid : undefined
  }

  async start(): Promise<void> {
    this.#endExpected = false
    const running = await this.#server.start()
    this.#running = running
    void running.exited.then((how) => this.#endExpected || this.#onLost(running, how))
  }

  async stop(): Promise<void> {
    this.#endExpected = true
    if (this.#running) await this.#server.stop(this.#running)
  }

  /** SIGKILL, like a crash. */
  async kill(): Promise<void> {
    this.#endExpected = true
    this.#running?.signal('SIGKILL')
    await this.#running?.exited
  }
}
