import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { writeWhole } from './write-whole.ts'

const USUAL = { postgres: 5432, kafka: 9092, kafkaController: 9093, registry: 8081, sandbox: 8790 }
export type PortName = keyof typeof USUAL

/** `usual`: the well-known ports, if free. `any`: leave those to others. */
export type PortPreference = 'usual' | 'any'

/** The port of each server: the one it had before, its usual one, or any that is free. */
export class Ports {
  readonly #file: string
  readonly #remembered: Partial<Record<PortName, number>>
  readonly #usual: Partial<Record<PortName, number>>
  readonly #chosen = new Map<PortName, number>()

  private constructor(
    file: string,
    preference: PortPreference,
    remembered: Partial<Record<PortName, number>>,
  ) {
    this.#file = file
    this.#usual = preference === 'usual' ? USUAL : {}
    this.#remembered = remembered
  }

  /** `file` remembers the ports from one start to the next. */
  static async load(file: string, preference: PortPreference): Promise<Ports> {
    return new Ports(file, preference, JSON.parse(await readFile(file, 'utf8').catch(() => '{}')))
  }

  /** Chooses a port that is free now. Call it again with the same name if another program took the port meanwhile. */
  async choose(name: PortName): Promise<number> {
    this.#chosen.delete(name)
    const port = await this.#firstFree([this.#remembered[name], this.#usual[name]])
    this.#chosen.set(name, port)
    this.#remembered[name] = port
    writeWhole(this.#file, `${JSON.stringify(this.#remembered, null, 2)}\n`)
    return port
  }

  async #firstFree(wanted: (number | undefined)[]): Promise<number> {
    for (const port of wanted) if (port !== undefined && (await this.#usable(port))) return port
    for (;;) {
      const port = await anyFreePort()
      if (await this.#usable(port)) return port
    }
  }

  async #usable(port: number): Promise<boolean> {
    return ![...this.#chosen.values()].includes(port) && (await isFree(port))
  }
}

/**
 * A port that is free now, below the range that systems use for outgoing connections: a server that is down for a
 * moment must find its port free again, and a client that retries must not connect to itself.
 */
export async function anyFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port)) return port
  }
}

/** Whether nobody listens on this port, on the loopback address or on all addresses. */
export async function isFree(port: number): Promise<boolean> {
  return (await canListen(port)) && !(await answers(port))
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port }, () => server.close(() => resolve(true)))
  })
}

/** Some systems let one process listen on 127.0.0.1 while another listens on every address. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
