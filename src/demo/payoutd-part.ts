import { ExpectedFailure } from '../cli/failure.ts'
import { type Host, lastLines, type ServerProcess } from '../devstack/process.ts'
import type { Server } from '../devstack/server.ts'
import { type PayoutdOptions, payoutd } from './payoutd-process.ts'

/** payoutd while its installation is up: it can be stopped, killed and started again. */
export class PayoutdPart {
  readonly logFile: string
  /** Rejects when payoutd ends without being asked to; the message is for a person. Never resolves. */
  readonly unexpectedEnd: Promise<never>
  readonly #server: Server
  readonly #reject: (error: Error) => void
  #running: ServerProcess | undefined
  #endExpected = false

  constructor(options: PayoutdOptions, host: Host) {
    this.logFile = options.logFile
    this.#server = payoutd(options, host)
    const { promise, reject } = Promise.withResolvers<never>()
    this.unexpectedEnd = promise
    this.#reject = reject
    // Nobody has to listen.
    promise.catch(() => undefined)
  }

  get pid(): number | undefined {
    return this.#running?.gone === false ? this.#running.pid : undefined
  }

  async start(): Promise<void> {
    this.#endExpected = false
    const running = await this.#server.start()
    this.#running = running
    void running.exited.then((how) => this.#report(how))
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

  async #report(how: string): Promise<void> {
    if (this.#endExpected) return
    this.#reject(
      new ExpectedFailure(
        `payoutd ${how}. Its log, ${this.logFile}, ends with:\n${await lastLines(this.logFile)}`,
      ),
    )
  }
}
