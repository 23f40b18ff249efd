import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type SilentWire = {
  port: number
  /** From now on nothing passes on the existing connections, and neither end notices; new ones work. */
  silence(): void
  close(): Promise<void>
}

/** A TCP wire to a server that can leave its connections half-open, like a firewall that drops its state. */
export async function silentWire(target: { host: string; port: number }): Promise<SilentWire> {
  const pairs: { near: Socket; far: Socket }[] = []
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect(target)
    pairs.push({ near, far })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => undefined).on('close', () => to.destroy())
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far).pause().removeAllListeners('close')
        far.unpipe(near).pause().removeAllListeners('close')
      }
    },
    async close() {
      for (const { near, far } of pairs) for (const socket of [near, far]) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
