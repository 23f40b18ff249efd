import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { ISocketFactory } from 'kafkajs'

const require = createRequire(import.meta.url)
const kafkajsOwn = require('kafkajs/src/network/socketFactory.js') as () => ISocketFactory

/**
 * KafkaJS 2.2.4 connects anew for what is asked of a client while it disconnects, or afterwards, and never closes that
 * connection: it would keep its place at the broker, and this process alive. These sockets end with their client. What it
 * closes, it closes at this end alone, and a silent broker never closes the other: these are closed with all that was written.
 */
export function socketsUntil(ended: AbortSignal, create: ISocketFactory = kafkajsOwn()): ISocketFactory {
  const open = new Set<Socket>()
  const end = () => {
    // Of an error KafkaJS hears, and gives up what waits for an answer; what it has closed itself needs none.
    for (const socket of open)
      socket.destroy(socket.writableEnded ? undefined : new Error('the client was ended'))
  }
  ended.addEventListener('abort', end, { once: true })
  return (to) => {
    ended.throwIfAborted()
    const socket = create(to)
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    socket.once('finish', () => socket.destroy())
    return socket
  }
}
