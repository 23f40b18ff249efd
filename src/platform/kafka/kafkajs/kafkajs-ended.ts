import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { ISocketFactory } from 'kafkajs'

const require = createRequire(import.meta.url)
const kafkajsOwn = require('kafkajs/src/network/socketFactory.js') as () => ISocketFactory

/**
 * If KafkaJS 2.2.4 gets a request while or after it disconnects, it connects again and never closes that
 * connection: it would keep its slot at the broker and keep this process alive. payoutd ends these sockets with
 * their client. KafkaJS closes a socket at its own end only, and a silent broker never closes the other end:
 * payoutd destroys such a socket once everything is written.
 */
export function socketsUntil(ended: AbortSignal, create: ISocketFactory = kafkajsOwn()): ISocketFactory {
  const open = new Set<Socket>()
  const end = () => {
    // An error makes KafkaJS abandon requests that wait for an answer. Sockets that it has closed itself need none.
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
