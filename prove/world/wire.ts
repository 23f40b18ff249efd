import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * A TCP wire between a process and a server that can have every fault of a wire. Existing connections keep their
 * faults; `mend` repairs them and the next ones.
 */
export class Wire {
  readonly #server: net.Server
  readonly #pairs = new Set<{ near: Socket; far: Socket }>()
  #target: Target
  #ill: Illness = HEALTHY
  /** Connections that were cut by `cutAfter`. */
  cuts = 0

  private constructor(target: Target) {
    this.#target = target
    this.#server = net.createServer({ noDelay: true }, (near) => this.#connect(near))
  }

  /** `target` as `host:port`. */
  static async to(target: string): Promise<Wire> {
    const wire = new Wire(targetOf(target))
    wire.#server.listen(0, '127.0.0.1')
    await once(wire.#server, 'listening')
    return wire
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Leads to another server from now on. Existing connections are cut. */
  turnTo(target: string): void {
    this.#target = targetOf(target)
    this.cutAll()
  }

  /** Refuses new connections and cuts the existing ones, or lets both live again. */
  down(): void {
    this.#ill = { ...HEALTHY, down: true }
    this.cutAll()
  }

  /** Passes no bytes in either direction, and neither end notices. */
  hang(): void {
    this.#ill = { ...HEALTHY, hang: true }
    this.silenceThoseThere()
  }

  /** Existing connections go silent for good, and neither end notices; new ones work. */
  silenceThoseThere(): void {
    for (const { near, far } of this.#pairs) for (const socket of [near, far]) socket.pause()
  }

  /** Requests arrive, and their answers wait until the wire is mended. */
  hold(): void {
    this.#ill = { ...HEALTHY, hold: true }
    for (const { far } of this.#pairs) far.pause()
  }

  /** Delays answers by this much. */
  slow(answerMs: number): void {
    this.#ill = { ...HEALTHY, answerMs }
  }

  /** Passes bytes of this kind on to the server, and cuts the connection before any answer. */
  cutAfter(isIt: (bytes: Buffer) => boolean, times = 1): void {
    this.#ill = { ...HEALTHY, cutAfter: isIt, cutsLeft: times }
  }

  mend(): void {
    this.#ill = HEALTHY
    for (const { near, far } of this.#pairs) for (const socket of [near, far]) socket.resume()
  }

  cutAll(): void {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy()
      far.destroy()
    }
  }

  async close(): Promise<void> {
    this.cutAll()
    await new Promise((done) => this.#server.close(done))
  }

  #connect(near: Socket): void {
    if (this.#ill.down) {
      near.resetAndDestroy()
      return
    }
    const far = net.connect({ ...this.#target, noDelay: true })
    const pair = { near, far }
    this.#pairs.add(pair)
    const end = () => {
      this.#pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      socket.on('error', end).on('close', end)
      if (this.#ill.hang) socket.pause()
    }
    if (this.#ill.hold) far.pause()
    let mute = false
    let answered = Promise.resolve()
    near.on('data', (bytes) => {
      far.write(bytes)
      const { cutAfter, cutsLeft } = this.#ill
      if (cutAfter === null || cutsLeft === 0 || !cutAfter(bytes)) return
      mute = true
      this.cuts++
      this.#ill = { ...this.#ill, cutsLeft: cutsLeft - 1 }
      // The server gets it, and has time to act on it.
      setTimeout(() => near.resetAndDestroy(), 50)
    })
    far.on('data', (bytes) => {
      const { answerMs } = this.#ill
      if (mute) return
      // In order, even if the wire was mended in between: nothing overtakes on a connection.
      answered = Promise.all([answered, answerMs === 0 ? undefined : delay(answerMs)]).then(() => {
        if (near.writable) near.write(bytes)
      })
    })
  }
}

type Target = { host: string; port: number }

/** Of `host:port`. */
function targetOf(text: string): Target {
  const [host = '', port] = text.split(':')
  return { host, port: Number(port) }
}

/** Whether the bytes contain this text. */
export const holds =
  (text: string) =>
  (bytes: Buffer): boolean =>
    bytes.includes(text)

type Illness = {
  down: boolean
  hang: boolean
  hold: boolean
  answerMs: number
  cutAfter: ((bytes: Buffer) => boolean) | null
  cutsLeft: number
}
const HEALTHY: Illness = {
  down: false,
  hang: false,
  hold: false,
  answerMs: 0,
  cutAfter: null,
  cutsLeft: 0,
}
